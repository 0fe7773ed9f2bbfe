"""``lpf review``: what people say about answers, on record; what to review next, how far reviewers
agree, and what follows from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lpf.cli.common import (
    MOST_LISTED,
    AsJson,
    WorkspaceFolder,
    command,
    group,
    open_workspace,
    print_document,
)
from lpf.cli.exits import FileName
from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError, ReviewError

if TYPE_CHECKING:
    from lpf.review import Judgement, Review
    from lpf.workspace import Workspace

UNSURE = "unsure"
LARGEST_SEED = 2**32 - 1

app = group("review", "Review answers: disagree on record, compare reviewers, apply what they say.")

AnswerId = Annotated[str, typer.Argument(metavar="RECORD", help="Record ID of the answer.")]
Reviewer = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Who reviews; a pseudonym will do. By default LPF_USER, the settings, or user and "
        "host.",
        show_default=False,
    ),
]
Comment = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="A comment; it can be erased: lpf ledger forget RECORD."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="ITEM", help="This item should not count; may be repeated."),
]
Reweight = Annotated[
    list[str] | None,
    typer.Option(metavar="ITEM=NUMBER", help="This item should count this many times as much."),
]
Duplicate = Annotated[
    list[str] | None,
    typer.Option(metavar="ITEM=ITEM", help="The first item is a copy of the second one."),
]
Reason = Annotated[
    list[str] | None,
    typer.Option(metavar="ITEM=TEXT", help="Why an item was judged so; erased with the comment."),
]
PredicateName = Annotated[
    str | None, typer.Argument(help="Predicate; not needed if the schema has only one.")
]
Accuracy = Annotated[float, typer.Option(help="How often a reviewer is right: 0.5 to below 1.")]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of what is drawn.")]


@command(app, "lpf review queue --limit 10", "lpf review queue --reviewer ann --sample 0.2")
def queue(
    predicate: Annotated[
        str | None, typer.Argument(help="Only answers about this predicate.")
    ] = None,
    by: Annotated[
        Literal["value", "conflict", "confidence"],
        typer.Option(help="What comes first: most to gain, most conflict, or least confidence."),
    ] = "value",
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Most answers to list.")] = 20,
    reviewer: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Leave out only what this reviewer did, not all that was reviewed.",
            show_default=False,
        ),
    ] = None,
    accuracy: Accuracy = 0.9,
    sample: Annotated[
        float, typer.Option(help="Share of the list that is drawn at random from the rest.")
    ] = 0.0,
    seed: Seed = 0,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the answers that are worth a review, without saying what they are.

    The gain is by how much one review is expected to lower the risk that the best guess is wrong;
    bits are what it is expected to tell. With --sample, scores of reviewed answers are not those of
    hard ones only.
    """
    from lpf.cli.review_view import show_queue
    from lpf.cli.terminal import console
    from lpf.review import QueueOptions

    options = QueueOptions(by, limit, reviewer, accuracy, sample, seed)
    with open_workspace(workspace) as space:
        found = space.reviews.queue(predicate, options)
    if as_json:
        print_document(
            {
                "answers": [one.to_dict() for one in found.answers],
                "waiting": found.waiting,
                "reviewed": found.reviewed,
                "known": found.known,
                "seed": seed,
                "unreadable": list(found.unreadable),
            }
        )
    else:
        show_queue(console(), found)
    _warn(found.unreadable)


@command(app, "lpf review show INF00000001")
def show(record_id: AnswerId, workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Show all reviews of an answer, and what they come to."""
    from lpf.cli.review_view import show_feedback
    from lpf.cli.terminal import console

    with open_workspace(workspace) as space:
        found = space.reviews.of(record_id)
    if as_json:
        print_document(found.to_dict())
    else:
        show_feedback(console(), found)


@command(
    app,
    "lpf review accept INF00000001",
    "lpf review accept INF00000001 --exclude S10_E001 --reason 'S10_E001=a forged letter'",
)
def accept(
    record_id: AnswerId,
    exclude: Exclude = None,
    reweight: Reweight = None,
    duplicate: Duplicate = None,
    reason: Reason = None,
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Record that the value of an answer is right."""
    judged = judgements(exclude, reweight, duplicate, reason)
    with open_workspace(workspace) as space:
        review = space.reviews.accept(record_id, judged, comment, reviewer)
        _show_recorded(space, review, as_json)


@command(
    app,
    "lpf review override INF00000001 low --comment 'The audit was last year.'",
    "lpf review override INF00000001 low --duplicate S10_E003=S10_E002 --reviewer ann",
)
def override(
    record_id: AnswerId,
    value: Annotated[str, typer.Argument(help="The value that is right.")],
    exclude: Exclude = None,
    reweight: Reweight = None,
    duplicate: Duplicate = None,
    reason: Reason = None,
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Record that another value is right than that of the answer."""
    judged = judgements(exclude, reweight, duplicate, reason)
    with open_workspace(workspace) as space:
        review = space.reviews.override(record_id, value, judged, comment, reviewer)
        _show_recorded(space, review, as_json)


@command(app, "lpf review unsure INF00000001 --comment 'Both letters may be right.'")
def unsure(
    record_id: AnswerId,
    exclude: Exclude = None,
    reweight: Reweight = None,
    duplicate: Duplicate = None,
    reason: Reason = None,
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Record that a reviewer looked at an answer and cannot tell."""
    judged = judgements(exclude, reweight, duplicate, reason)
    with open_workspace(workspace) as space:
        review = space.reviews.unsure(record_id, judged, comment, reviewer)
        _show_recorded(space, review, as_json)


@command(app, "lpf review blind S10", "lpf review blind S10 --value low --reviewer ann")
def blind(
    entity: Annotated[str, typer.Argument(help="Entity ID.")],
    predicate: PredicateName = None,
    value: Annotated[
        str | None,
        typer.Option(
            help="Your value, or unsure. Without it, a terminal is asked.", metavar="VALUE"
        ),
    ] = None,
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show the evidence without the answer, and record the value that a reviewer gives.

    A question that was not asked yet is asked and recorded first. The answer is shown afterwards,
    by lpf review reveal.
    """
    from lpf.cli.review_view import show_blind_case
    from lpf.cli.terminal import console

    with open_workspace(workspace) as space:
        name = space.predicate(predicate)
        if value is None:
            case = space.reviews.blind_case(entity, name)
            if not as_json:
                show_blind_case(console(), case)
            if as_json or not sys.stdin.isatty():
                _say_how(case.to_dict(), as_json)
                return
            value = typer.prompt(f"Your value ({one_line(', '.join(case.values))}, or unsure)")
            if space.reviews.blind_case(entity, name) != case:
                raise ReviewError(
                    f"the evidence about {entity!r} has changed since it was shown. Nothing was "
                    "recorded.",
                    field="entity",
                    hint="Look at it again: run the same command.",
                )
        given = None if value == UNSURE and UNSURE not in space.schema[name].values else value
        review = space.reviews.blind(entity, name, given, comment, reviewer)
    if as_json:
        document = review.to_dict()
        del document["about"]  # the answer is looked at by 'lpf review reveal', which is recorded
        print_document(document)
        return
    typer.echo(one_line(f"{review.record_id}: {review.reviewer} says {given or UNSURE}, blind."))
    if review.replaces:
        typer.echo(f"The earlier blind pass {review.replaces} no longer counts.")
    typer.echo(f"To see the answer: lpf review reveal {review.record_id}")


def _say_how(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_document(document)
    else:
        typer.echo("Nothing was recorded. To record your value, add --value VALUE.", err=True)


@command(app, "lpf review reveal S10", "lpf review reveal INF00000002 --override low")
def reveal(
    asked: Annotated[
        str, typer.Argument(metavar="ENTITY|REVIEW", help="Entity, or record ID of a blind pass.")
    ],
    predicate: PredicateName = None,
    accepted: Annotated[
        bool, typer.Option("--accept", help="Then record that the answer is right.")
    ] = False,
    overridden: Annotated[
        str | None,
        typer.Option("--override", metavar="VALUE", help="Then record that this value is right."),
    ] = None,
    is_unsure: Annotated[
        bool, typer.Option("--unsure", help="Then record that you cannot tell.")
    ] = False,
    exclude: Exclude = None,
    reweight: Reweight = None,
    duplicate: Duplicate = None,
    reason: Reason = None,
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show the answer after a blind pass, and record the final verdict.

    That the answer was shown is recorded too: from then on the reviewer cannot pass blind.
    """
    from lpf.cli.review_view import show_revealed
    from lpf.cli.terminal import console
    from lpf.ledger.records import is_record_id

    if accepted + is_unsure + (overridden is not None) > 1:
        raise ConfigError(
            "give only one of --accept, --override and --unsure. Nothing was shown.",
            field="verdict",
        )
    if predicate is not None and is_record_id(asked):
        raise ConfigError(
            f"{asked} is one blind pass, so no predicate goes with it. Nothing was shown.",
            field="predicate",
            hint="Leave it out.",
        )
    judged = judgements(exclude, reweight, duplicate, reason)
    has_verdict = accepted or is_unsure or overridden is not None
    if (judged or comment) and not has_verdict:
        raise ConfigError(
            "judgements and comments belong to a verdict. Nothing was shown.",
            field="verdict",
            hint="Add --accept, --override VALUE or --unsure.",
        )
    with open_workspace(workspace) as space:
        reviews = space.reviews
        if is_record_id(asked):
            blind_id = asked
        else:
            blind_id = reviews.blind_pass_of(asked, space.predicate(predicate), reviewer).record_id
        shown = reviews.reveal(blind_id, reviewer)
        record, final = shown.record_id, None
        if not as_json:
            show_revealed(console(), shown)
        if accepted:
            final = reviews.accept(record, judged, comment, reviewer)
        elif overridden is not None:
            final = reviews.override(record, overridden, judged, comment, reviewer)
        elif is_unsure:
            final = reviews.unsure(record, judged, comment, reviewer)
        if as_json:
            document = shown.to_dict()
            print_document(document | {"review": None if final is None else final.to_dict()})
        elif final is not None:
            _show_recorded(space, final, as_json)
        else:
            typer.echo(f"To conclude: lpf review reveal {blind_id} --accept or --override VALUE")


@command(app, "lpf review withdraw INF00000002")
def withdraw(
    record_id: Annotated[str, typer.Argument(metavar="REVIEW", help="Record ID of the review.")],
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Take back a review or an adjudication. It stays on record, and no longer counts."""
    with open_workspace(workspace) as space:
        made = space.reviews.withdraw(record_id, reviewer)
    if as_json:
        print_document({"record_id": made.record_id, "about": made.about})
    else:
        typer.echo(f"{made.record_id}: {made.about} is withdrawn.")


@command(app, "lpf review adjudicate INF00000001 high --comment 'Both saw the same letter.'")
def adjudicate(
    record_id: AnswerId,
    value: Annotated[str, typer.Argument(help="The value that is right.")],
    comment: Comment = None,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Record the final decision about an answer whose reviewers disagree."""
    with open_workspace(workspace) as space:
        made = space.reviews.adjudicate(record_id, value, comment, reviewer)
    if as_json:
        print_document(made.to_dict())
    else:
        over = ", ".join(made.reviews)
        typer.echo(one_line(f"{made.record_id}: {record_id} is {made.value}; decides {over}."))


@command(app, "lpf review agreement", "lpf review agreement compliance_level --with-open --json")
def agreement(
    predicate: Annotated[
        str | None, typer.Argument(help="Only this predicate; by default all.")
    ] = None,
    with_open: Annotated[
        bool, typer.Option("--with-open", help="Also count reviews that saw the answer first.")
    ] = False,
    unsure_as_value: Annotated[
        bool, typer.Option("--unsure-as-value", help="Count unsure as a value of its own.")
    ] = False,
    seed: Seed = 0,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show how far reviewers agree beyond chance: Krippendorff's alpha, over all and by pair.

    1 is perfect agreement, 0 that of chance. Only blind passes count: who has seen the answer tends
    to agree with it. The interval comes from drawing answers again.
    """
    from lpf.cli.review_view import show_agreement
    from lpf.cli.terminal import console
    from lpf.review import AgreementOptions

    options = AgreementOptions(with_open, unsure_as_value, seed)
    with open_workspace(workspace) as space:
        found = space.reviews.agreement(predicate, options)
        unreadable = space.reviews.all().unreadable
    _warn(unreadable)
    if as_json:
        document = [one.to_dict() for one in found]
        print_document({"predicates": document, "seed": seed, "draws": options.draws})
    else:
        show_agreement(console(), found, options)


@command(app, "lpf review apply --as facts --dry-run", "lpf review apply --as labels --reviewers 2")
def apply(
    target: Annotated[
        Literal["facts", "labels"],
        typer.Option("--as", help="Make known facts, or labels of items to train on."),
    ],
    predicate: Annotated[
        str | None, typer.Option(help="Only answers about this predicate.")
    ] = None,
    reviewers: Annotated[
        int, typer.Option(min=1, max=MOST_LISTED, help="Reviewers who must have given a value.")
    ] = 1,
    accuracy: Accuracy = 0.9,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    reviewer: Reviewer = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make facts or training labels of settled and adjudicated answers.

    What was applied before and has not changed stays as it is, so that applying again is harmless.
    Each application is recorded.
    """
    from lpf.cli.review_view import show_applied
    from lpf.cli.terminal import console
    from lpf.review import ApplyOptions

    options = ApplyOptions(target, predicate, reviewers, accuracy, dry_run)
    with open_workspace(workspace) as space:
        outcome = space.reviews.apply(options, reviewer)
        unreadable = space.reviews.all().unreadable
    _warn(unreadable)
    if as_json:
        print_document(outcome.to_dict())
    else:
        show_applied(console(), outcome)


@command(app, "lpf review export reviews.xlsx")
def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", parser=FileName, help="File: .jsonl, .csv, .xlsx or .parquet."
        ),
    ],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write all reviews and adjudications to a file, withdrawn ones included."""
    from lpf.cli.terminal import count

    with open_workspace(workspace) as space:
        rows = space.reviews.export(file)
        unreadable = space.reviews.all().unreadable
    _warn(unreadable)
    if as_json:
        print_document({"file": file, "rows": rows})
    else:
        typer.echo(f"Wrote {count(rows, 'row')} to {one_line(file)}.")


def judgements(
    exclude: Sequence[str] | None,
    reweight: Sequence[str] | None,
    duplicate: Sequence[str] | None,
    reason: Sequence[str] | None,
) -> list[Judgement]:
    """What the options say about items. ConfigError for one that cannot be read, or a reason for an
    item that is not judged."""
    from lpf.review import Judgement

    reasons = dict(_pair("--reason", text) for text in reason or ())
    judged = [Judgement("exclude", name, reason=reasons.get(name)) for name in exclude or ()]
    for text in reweight or ():
        name, _, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            raise ConfigError(
                f"must be ITEM=NUMBER, got {text!r}. Nothing was recorded.", field="--reweight"
            ) from None
        judged.append(Judgement("reweight", name, weight, reason=reasons.get(name)))
    for text in duplicate or ():
        name, other = _pair("--duplicate", text)
        judged.append(Judgement("duplicate", name, of=other, reason=reasons.get(name)))
    for name in reasons.keys() - {one.item for one in judged}:
        raise ConfigError(
            f"{name!r} is not judged. Nothing was recorded.",
            field="--reason",
            hint="Say how with --exclude, --reweight or --duplicate.",
        )
    return judged


def _pair(option: str, text: str) -> tuple[str, str]:
    first, equals, second = text.partition("=")
    if not equals or not first or not second:
        other = "TEXT" if option == "--reason" else "ITEM"
        raise ConfigError(
            f"must be ITEM={other}, got {text!r}. Nothing was recorded.", field=option
        )
    return first, second


def _show_recorded(space: Workspace, review: Review, as_json: bool) -> None:
    from lpf.cli.review_view import show_recorded
    from lpf.cli.terminal import console

    if as_json:
        print_document(review.to_dict())
    else:
        show_recorded(console(), review, space.reviews.of(review.about))


def _warn(unreadable: Sequence[str]) -> None:
    for one in unreadable:
        typer.echo(f"warning: not counted: {one_line(one)}", err=True)
