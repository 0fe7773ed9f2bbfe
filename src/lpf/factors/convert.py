"""From latent posteriors to factors (Algorithm 1), for one item or thousands at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.factors import moments
from lpf.factors.blocks import for_blocks
from lpf.factors.distributions import apply_channel, label_channel, softmax, tempered
from lpf.factors.keys import context_key, feature_keys
from lpf.factors.samplers import DETERMINISTIC, PAIRED, check_sampler, choose, draw, pool_of
from lpf.model.runtime import Runtime, check_shape, range_ids, refuse_non_finite, refuse_overflow
from lpf.types import Factors, Float32Array, FloatArray, KeyArray, Posteriors

DEFAULT_SAMPLES = 16  # the paper's M

# Rows of decoder input per block: few enough for a core's cache, and enough that the interpreter
# lock does not matter.
BLOCK_ROWS = 8192
MOMENT_ROWS = 128  # with ``moments`` an item needs as much memory as about this many samples

# The noise of ``shift_under_noise``, as a share of the typical deviation of the features, and how
# far a model may be moved by it.
NOISE_SHARE, NOISE_SEED = 1e-3, 0
LARGEST_SHIFT = 0.1

# Seconds spent on encoding and on conversion, one pair per block.
StepTimes = list[tuple[float, float]]


@dataclass(frozen=True)
class ConversionConfig:
    """How q(z|e) becomes a factor Φ: the integrator (``sampler``), samples and temperature.

    ``mean`` decodes the mean of the posterior, ``moments`` integrates without sampling. Neither
    draws samples: ``n_samples`` is not allowed and ``seed`` has no effect.
    """

    sampler: str = "mean"
    n_samples: int | None = None
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sampler in DETERMINISTIC and self.n_samples is not None:
            raise ConfigError(f"does not apply to the sampler {self.sampler!r}.", field="n_samples")
        check_sampler(self.sampler, 1 if self.sampler in DETERMINISTIC else self.samples)
        if not self.temperature > 0 or not np.isfinite(self.temperature):
            raise ConfigError(f"must be above 0, got {self.temperature!r}.", field="temperature")

    @property
    def samples(self) -> int:
        """Number of samples M; 0 for ``mean`` and ``moments``."""
        if self.sampler in DETERMINISTIC:
            return 0
        return DEFAULT_SAMPLES if self.n_samples is None else self.n_samples


class Converter:
    """Computes factors of one predicate with one model. Reuse it: what does not depend on the items
    is prepared once."""

    def __init__(self, runtime: Runtime, predicate: str, config: ConversionConfig) -> None:
        self.runtime = runtime
        self.predicate = predicate
        self.config = config
        self.values = runtime.config.head(predicate).values
        self._decoder = runtime.decoder(predicate)
        self._channel = label_channel(runtime.config.head(predicate))
        self._context = context_key(runtime.sampling_key, predicate, config.seed)
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
        """Encode and convert features [N, width] block by block.

        ``keys`` [N] seed the samples of each item (default: from the features). ``times`` collects
        the durations of both steps.
        """
        ids = ids if len(ids) else range_ids(len(features))
        check_shape(features, ids, self.runtime.config.encoder.input_width)
        keys = self._question_keys(feature_keys(features) if keys is None else keys, len(features))
        if len(features) <= self._block:
            potential, mean_sigma = self._from_block(features, keys, ids, times)
        else:
            potential = np.empty((len(features), len(self.values)))
            mean_sigma = np.empty(len(features))

            def work(block: slice) -> None:
                potential[block], mean_sigma[block] = self._from_block(
                    features[block], keys[block], ids[block], times
                )

            for_blocks(work, len(features), self._block)
        refuse_overflow(ids, potential, mean_sigma)
        return self._factors(ids, potential, mean_sigma)

    def from_posteriors(self, posteriors: Posteriors, keys: KeyArray | None = None) -> Factors:
        """Convert posteriors [S, N, d]."""
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
        """Return p(y|z) for every sample, [S, N, M, V]; y is the value of the entity."""
        if not self.config.samples:
            raise ConfigError(f"{self.config.sampler!r} draws no samples.", field="sampler")
        keys, samples = self._keys_of(posteriors, keys), self.config.samples
        drawn = np.empty((self.runtime.members, len(posteriors), samples, len(self.values)))

        def work(block: slice) -> None:
            mu, sigma = posteriors.mu[:, block], posteriors.sigma[:, block]
            decoded = self._decode_samples(mu, sigma, keys[block])
            drawn[:, block] = apply_channel(self._channel, decoded.transpose(0, 3, 2, 1))

        for_blocks(work, len(posteriors), self._block)
        return drawn

    def _from_block(
        self, features: Float32Array, keys: KeyArray, ids: Sequence[str], times: StepTimes | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return potentials [n, V] and mean σ [n] for the features of one block."""
        refuse_non_finite(features, ids)
        begun = perf_counter()
        # Overflow is reported afterwards, with the ids of the items.
        with np.errstate(over="ignore", invalid="ignore"):
            mu, sigma = self.runtime.encode_arrays(features)
            encoded = perf_counter()
            potential, mean_sigma = self._block_potential(mu, sigma, keys), _mean_sigma(sigma)
        if times is not None:
            times.append((encoded - begun, perf_counter() - encoded))
        return potential, mean_sigma

    def _block_potential(self, mu: Float32Array, sigma: Float32Array, keys: KeyArray) -> FloatArray:
        members = apply_channel(self._channel, self._integrate(mu, sigma, keys))
        return tempered(geometric_mean(members), self.config.temperature)

    def _integrator(self) -> Callable[[Float32Array, Float32Array, KeyArray], FloatArray]:
        """Return the function (μ, σ [S, N, d], keys [N]) -> Φ [S, N, V]."""
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
        # Dividing by the sum instead of M also removes float32 rounding errors.
        mean /= np.add.reduce(mean, axis=2, keepdims=True)
        return np.asarray(mean)

    def _decode_samples(
        self, mu: Float32Array, sigma: Float32Array, keys: KeyArray
    ) -> Float32Array:
        """Return p(y|z) [S, V, M, N]. Items are the last axis, so that arithmetic with per-item
        arrays runs along contiguous memory."""
        mirrored = self.config.sampler in PAIRED
        return self._decoder.around(mu, self._scaled_noise(sigma, keys), mirrored=mirrored)

    def _scaled_noise(self, sigma: Float32Array, keys: KeyArray) -> Float32Array:
        """Return σ ⊙ ε [S, M, N, d]; for mirrored pairs only the first half."""
        members, count, width = sigma.shape
        sampler, samples = self.config.sampler, self.config.samples
        drawn = samples // 2 if sampler in PAIRED else samples
        noise = self.runtime.scratch.array("swing", (members, drawn, count, width))
        if sampler == "plain":
            np.multiply(draw(sampler, keys, samples, width), sigma[:, None], out=noise)
            return noise
        chosen, signs = choose(keys, width)
        pool = pool_of(sampler, samples, width)[:drawn]
        # Written and scaled in place, which needs one array less in the cache.
        points = pool.take(chosen, axis=1, out=noise[-1], mode="clip")
        np.multiply(points, (sigma * signs)[:, None], out=noise)
        return noise

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
                f"posteriors have shape {posteriors.mu.shape}, the model needs "
                f"[{expected[0]}, N, {expected[1]}]."
            )
        finite = np.isfinite(posteriors.mu).all(axis=(0, 2))
        finite &= (np.isfinite(posteriors.sigma) & (posteriors.sigma >= 0)).all(axis=(0, 2))
        if not finite.all():
            named = [posteriors.evidence_ids[int(i)] for i in np.flatnonzero(~finite)]
            raise NonFiniteError(
                f"posteriors of {len(named)} item(s) are not finite or have a negative sigma: "
                f"{', '.join(named[:10])}. Nothing was computed."
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
    """Return the normalised geometric mean over members, [S, N, V] -> [N, V].

    A value with probability zero in one member gets zero. If this leaves no value, the result is
    NaN, which is refused later.
    """
    if potential.shape[0] == 1:
        return np.asarray(potential[0])
    with np.errstate(divide="ignore"):
        logs = np.log(potential).mean(axis=0)
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))


def _mean_sigma(sigma: Float32Array) -> FloatArray:
    members, _, width = sigma.shape
    # Divide in float64: records store this number, and weights are recomputed from it.
    return np.asarray(np.add.reduce(sigma, axis=(0, 2)).astype(np.float64) / (members * width))


def shift_under_noise(runtime: Runtime, predicate: str, features: Float32Array) -> float:
    """How much noise changes what items say: every feature is moved at random by a thousandth of
    the typical deviation, and the result is the mean over the items of their largest change of a
    probability. It is about 0.001 for a sound model, and infinite if the model overflows."""
    deviation = features.std(axis=0, dtype=np.float64)
    varies = deviation > 0.0
    typical = np.median(deviation[varies]) if varies.any() else np.abs(features).max(initial=0.0)
    drawn = np.random.default_rng(NOISE_SEED).standard_normal(features.shape)
    moved = (features + NOISE_SHARE * typical * drawn).astype(np.float32)
    converter = Converter(runtime, predicate, ConversionConfig("mean"))
    try:
        before, after = (converter.from_features(one).potential for one in (features, moved))
    except NonFiniteError:
        return math.inf
    return float(np.abs(after - before).max(axis=1).mean())
