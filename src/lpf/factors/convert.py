"""ConvertLatentToFactors (Algorithm 1), for one item and for thousands in one pass.

Work on many rows in blocks that stay in a core's cache, one block a core at a time.

NumPy's element-wise work uses one core and large intermediates fall out of cache; blocks on
threads cure both (NumPy releases the interpreter's lock). While blocks run, BLAS itself is held to
one thread, or the threads would fight over the cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

import numpy as np
from threadpoolctl import ThreadpoolController

from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.factors import moments
from lpf.factors.keys import context_key, feature_keys
from lpf.factors.samplers import DETERMINISTIC, PAIRED, check_sampler, choose, draw, pool_of
from lpf.factors.tempering import channel_of, softmax, tempered, through
from lpf.model.runtime import Runtime, check_shape, range_ids, refuse_non_finite, refuse_overflow
from lpf.types import Factors, Float32Array, FloatArray, KeyArray, Posteriors

BlockWork = Callable[[slice], None]


def for_blocks(work: BlockWork, count: int, block: int) -> None:
    """Calls ``work`` on slices that cover range(count). Errors of a block are raised here."""
    slices = [slice(start, min(start + block, count)) for start in range(0, count, block)]
    if len(slices) <= 1:
        for one in slices:
            work(one)
        return
    with _SINGLE_THREADED_BLAS.held():
        for _ in _workers(os.getpid()).map(work, slices):
            pass


@lru_cache(maxsize=1)
def _workers(process: int) -> ThreadPoolExecutor:
    """Kept between calls, so that the threads' scratch arrays are. A forked child has none of its
    parent's threads, hence one pool a process."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lpf-block")


class _BlasThreads:
    """BLAS keeps its number of threads for the whole process, so overlapping callers must share
    one change: the first sets it, the last one puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: object = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")

    def _leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.restore_original_limits()  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Looks for the BLAS libraries once; it takes milliseconds."""
    return ThreadpoolController()


_SINGLE_THREADED_BLAS = _BlasThreads()


DEFAULT_SAMPLES = 16  # the paper's M

# Rows of decoder input in a block: small enough for a core's cache, large enough that handing the
# interpreter's lock from thread to thread does not count.
BLOCK_ROWS = 8192
MOMENT_ROWS = 128  # an item in moments takes the room of about that many samples

# Seconds of encoding and of converting, one pair a block.
StepTimes = list[tuple[float, float]]


@dataclass(frozen=True)
class ConversionConfig:
    """How q(z|e) becomes Φ: by which integrator, with how many samples, at which temperature.

    ``mean`` decodes at the posterior's mean, ``moments`` integrates without sampling. Both draw
    nothing: they refuse ``n_samples``, and ``seed`` makes no difference to them.
    """

    sampler: str = "mean"
    n_samples: int | None = None
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sampler in DETERMINISTIC and self.n_samples is not None:
            raise ConfigError(f"n_samples: does not apply to the sampler {self.sampler!r}.")
        check_sampler(self.sampler, 1 if self.sampler in DETERMINISTIC else self.samples)
        if not self.temperature > 0 or not np.isfinite(self.temperature):
            raise ConfigError(f"temperature: must be above 0, got {self.temperature!r}.")

    @property
    def samples(self) -> int:
        """M, or 0 for an integrator that draws none."""
        if self.sampler in DETERMINISTIC:
            return 0
        return DEFAULT_SAMPLES if self.n_samples is None else self.n_samples


class Converter:
    """Factors of one predicate under one model. Everything that does not depend on the items is
    prepared here, once."""

    def __init__(self, runtime: Runtime, predicate: str, config: ConversionConfig) -> None:
        self.runtime = runtime
        self.predicate = predicate
        self.config = config
        self.values = runtime.config.head(predicate).values
        self._decoder = runtime.decoder(predicate)
        self._channel = channel_of(runtime.config.head(predicate))
        self._context = context_key(runtime.version, predicate, config.seed)
        self._integrate = self._integrator()
        rows = MOMENT_ROWS if config.sampler == "moments" else max(1, config.samples)
        self._block = max(1, BLOCK_ROWS // rows // runtime.members)

    def from_features(
        self,
        features: Float32Array,
        keys: KeyArray | None = None,
        ids: Sequence[str] = (),
        times: StepTimes | None = None,
    ) -> Factors:
        """Encodes and converts [N, width] features block by block, keeping no posterior.
        ``times`` collects how long each of the two took."""
        ids = ids if len(ids) else range_ids(len(features))
        check_shape(features, ids, self.runtime.config.encoder.input_width)
        keys = self._question_keys(feature_keys(features) if keys is None else keys, len(features))
        if len(features) <= self._block:
            potential, mean_sigma = self._from_block(features, keys, ids, times)
        else:
            potential = np.empty((len(features), len(self.values)))
            mean_sigma = np.empty(len(features))

            def work(block: slice) -> None:
                found = self._from_block(features[block], keys[block], ids[block], times)
                potential[block], mean_sigma[block] = found

            for_blocks(work, len(features), self._block)
        refuse_overflow(ids, potential, mean_sigma)
        return self._factors(ids, potential, mean_sigma)

    def from_posteriors(self, posteriors: Posteriors, keys: KeyArray | None = None) -> Factors:
        """Converts posteriors [S, N, d] made before."""
        self._check(posteriors)
        count = len(posteriors)
        keys = self._keys_of(posteriors, keys)
        potential = np.empty((count, len(self.values)))

        def work(block: slice) -> None:
            mu, sigma = posteriors.mu[:, block], posteriors.sigma[:, block]
            with np.errstate(over="ignore", invalid="ignore"):
                potential[block] = self._block_potential(mu, sigma, keys[block])

        for_blocks(work, count, self._block)
        refuse_overflow(posteriors.evidence_ids, potential)
        return self._factors(posteriors.evidence_ids, potential, posteriors.mean_sigma)

    def sampled(self, posteriors: Posteriors, keys: KeyArray | None = None) -> FloatArray:
        """p(y|z) of every draw, [S, N, M, V], for the uncertainty of an answer; y is the entity's
        value."""
        if not self.config.samples:
            raise ConfigError(f"sampler: {self.config.sampler!r} draws no samples.")
        keys, samples = self._keys_of(posteriors, keys), self.config.samples
        drawn = np.empty((self.runtime.members, len(posteriors), samples, len(self.values)))

        def work(block: slice) -> None:
            mu, sigma = posteriors.mu[:, block], posteriors.sigma[:, block]
            decoded = self._decode_samples(mu, sigma, keys[block])
            drawn[:, block] = through(self._channel, decoded.transpose(0, 3, 2, 1))

        for_blocks(work, len(posteriors), self._block)
        return drawn

    def _from_block(
        self, features: Float32Array, keys: KeyArray, ids: Sequence[str], times: StepTimes | None
    ) -> tuple[FloatArray, FloatArray]:
        """Potentials [n, V] and mean σ [n] of a block's features."""
        refuse_non_finite(features, ids)
        begun = perf_counter()
        # An exploded network overflows here; its factors are refused afterwards, by name.
        with np.errstate(over="ignore", invalid="ignore"):
            mu, sigma = self.runtime.encode_arrays(features)
            encoded = perf_counter()
            found = self._block_potential(mu, sigma, keys), _mean_sigma(sigma)
        if times is not None:
            times.append((encoded - begun, perf_counter() - encoded))
        return found

    def _block_potential(self, mu: Float32Array, sigma: Float32Array, keys: KeyArray) -> FloatArray:
        said = through(self._channel, self._integrate(mu, sigma, keys))
        potential = geometric_mean(said)
        return tempered(potential, self.config.temperature)

    def _integrator(self) -> Callable[[Float32Array, Float32Array, KeyArray], FloatArray]:
        """[S, N, d] -> Φ [S, N, V]."""
        if self.config.sampler == "mean":
            return lambda mu, sigma, keys: self._at_mean(mu)
        if self.config.sampler == "moments":
            return lambda mu, sigma, keys: moments.integrate(self._decoder, mu, sigma)
        return self._by_sampling

    def _at_mean(self, mu: Float32Array) -> FloatArray:
        return softmax(self._decoder.logits(mu).astype(np.float64))

    def _by_sampling(self, mu: Float32Array, sigma: Float32Array, keys: KeyArray) -> FloatArray:
        drawn = self._decode_samples(mu, sigma, keys)
        mean = np.add.reduce(drawn, axis=2).swapaxes(1, 2).astype(np.float64)
        # Dividing by the sum in place of M also takes out float32's rounding.
        mean /= np.add.reduce(mean, axis=2, keepdims=True)
        return np.asarray(mean)

    def _decode_samples(
        self, mu: Float32Array, sigma: Float32Array, keys: KeyArray
    ) -> Float32Array:
        """p(y|z) [S, V, M, N]. Samples lie outside items: what belongs to an item then repeats over
        whole planes, and the arithmetic runs along contiguous memory."""
        mirrored = self.config.sampler in PAIRED
        return self._decoder.around(mu, self._swing(sigma, keys), mirrored=mirrored)

    def _swing(self, sigma: Float32Array, keys: KeyArray) -> Float32Array:
        """σ ⊙ ε [S, M, N, d], of mirror pairs the first half alone."""
        members, count, width = sigma.shape
        sampler, samples = self.config.sampler, self.config.samples
        drawn = samples // 2 if sampler in PAIRED else samples
        swing = self.runtime.scratch.array("swing", (members, drawn, count, width))
        if sampler == "plain":
            np.multiply(draw(sampler, keys, samples, width), sigma[:, None], out=swing)
            return swing
        chosen, signs = choose(keys, width)
        pool = pool_of(sampler, samples, width)[:drawn]
        # Straight into place and scaled there: one array less in the cache.
        points = pool.take(chosen, axis=1, out=swing[-1], mode="clip")
        np.multiply(points, (sigma * signs)[:, None], out=swing)
        return swing

    def _keys_of(self, posteriors: Posteriors, keys: KeyArray | None) -> KeyArray:
        own = feature_keys(posteriors.mu[0]) if keys is None else keys
        return self._question_keys(own, len(posteriors))

    def _question_keys(self, keys: KeyArray, count: int) -> KeyArray:
        if len(keys) != count:
            raise EvidenceError(f"{len(keys)} keys for {count} items.")
        return keys ^ self._context

    def _check(self, posteriors: Posteriors) -> None:
        expected = (self.runtime.members, self.runtime.config.encoder.latent_width)
        if (posteriors.mu.shape[0], posteriors.mu.shape[2]) != expected:
            raise EvidenceError(
                f"posteriors have shape {posteriors.mu.shape}, the model's are "
                f"[{expected[0]}, N, {expected[1]}]."
            )
        finite = np.isfinite(posteriors.mu).all(axis=(0, 2))
        finite &= (np.isfinite(posteriors.sigma) & (posteriors.sigma >= 0)).all(axis=(0, 2))
        if not finite.all():
            named = [posteriors.evidence_ids[int(i)] for i in np.flatnonzero(~finite)]
            raise NonFiniteError(
                f"posteriors of {len(named)} item(s) are not finite or have a negative sigma: "
                f"{', '.join(named[:10])}. Nothing was answered."
            )

    def _factors(
        self, ids: Sequence[str], potential: FloatArray, mean_sigma: FloatArray
    ) -> Factors:
        return Factors(
            ids,
            self.predicate,
            self.values,
            potential,
            mean_sigma,
            self.config.sampler,
            self.config.samples,
            self.config.temperature,
        )


def geometric_mean(potential: FloatArray) -> FloatArray:
    """Normalised geometric mean over members: [S, N, V] -> [N, V]. A value that one member rules
    out is out; members that together rule out every value give NaN, which is refused."""
    if potential.shape[0] == 1:
        return np.asarray(potential[0])
    with np.errstate(divide="ignore"):
        logs = np.log(potential).mean(axis=0)
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))


def _mean_sigma(sigma: Float32Array) -> FloatArray:
    members, _, width = sigma.shape
    # float64 before dividing: the weight must follow from the number that a record keeps.
    return np.asarray(np.add.reduce(sigma, axis=(0, 2)).astype(np.float64) / (members * width))
