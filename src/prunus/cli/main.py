"""The command ``prunus``: commands are loaded when they are called, and every error ends here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, Final

import click

from ..core.errors import MissingExtra, PrunusError
from .output import forget_stdout, one_line, say

COMMANDS: Final = {
    "clean": "Clean pages: what a reader sees stays, all else goes.",
    "prune": "Keep the evidence for a question that fits a token budget.",
    "ask": "Answer a question from pages, with quotes that are checked.",
    "replay": "Answer a recorded question again, from the record.",
    "search": "Search the web, or a folder, and list what is found.",
    "index": "Keep documents under a tree of summaries, and ask them many times.",
    "batch": "Do many jobs, and go on where a run was stopped.",
    "fetch": "Fetch pages as they are, inside the limits.",
    "cache": "Show or clear what is kept on disk between runs.",
    "doctor": "Show the settings in force, and what works.",
    "completion": "Print the completion script of a shell.",
}
"""The commands of this folder, one file each, in the order of the help."""

GROUP: Final = "prunus.commands"
"""The entry-point group of foreign commands; they may not shadow those above."""

EXTRAS: Final = {"eval": "evals", "train": "train"}
"""Foreign commands that come with an extra of ours."""


class App(click.Group):
    """Loads a command when it is called, and turns its errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return our commands, then the foreign ones."""
        return [*COMMANDS, *sorted(foreign_commands())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; a foreign one that is broken says so when it is invoked, not before."""
        if cmd_name in COMMANDS:
            return _ours(cmd_name)
        entry = foreign_commands().get(cmd_name)
        return _load(entry) if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        foreign = foreign_commands()
        if foreign:
            with formatter.section("Commands from extras and other packages"):
                formatter.write_dl([(name, _origin(entry)) for name, entry in sorted(foreign.items())])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command to one of the exit codes."""
        inside = super().invoke

        def work() -> int:
            inside(ctx)
            return 0

        ctx.exit(guard(work))


def guard(work: Callable[[], int]) -> int:
    """Run something to its exit code; what goes wrong on purpose is one line on stderr."""
    try:
        code = work()
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _usage(error)
    except PrunusError as error:
        say(f"prunus: {one_line(str(error))}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("prunus: interrupted; nothing was written")
        return 130
    except BrokenPipeError:  # the reader has seen enough
        forget_stdout()
        return 0
    except Exception:  # a bug: the traceback is what its finder needs
        traceback.print_exc()
        return 1
    return code


def foreign_commands() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name, not loaded."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in COMMANDS}


def _ours(name: str) -> click.Command:
    command: click.Command = import_module(f"{__package__}.commands.{name}").command
    return command


def _load(entry: EntryPoint) -> click.Command:
    """Load a foreign command, or make one that says why it cannot be loaded."""
    try:
        command: click.Command = entry.load()
    except ImportError as error:
        return _broken(entry.name, _missing(entry.name, error))
    except Exception as error:  # a stranger's fault must not take the other commands down
        reason = f"{type(error).__name__}: {error}"
        return _broken(entry.name, PrunusError(f"{entry.name}: this command cannot be loaded ({reason})"))
    return command


def _missing(name: str, error: ImportError) -> MissingExtra:
    """Say which line installs what a command needs."""
    lacking = error.name or str(error)
    if name in EXTRAS:
        way = f"run: pip install 'prunus[{EXTRAS[name]}]'"
    else:
        way = f"run: pip install {lacking.partition('.')[0]}"
    return MissingExtra(f"{name} needs {lacking}, which is not installed; {way}", subject=name)


def _broken(name: str, error: PrunusError) -> click.Command:
    def complain(**_: Any) -> None:
        raise error

    return click.Command(
        name,
        callback=complain,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help=one_line(str(error)),
    )


def _origin(entry: EntryPoint) -> str:
    """Say where a foreign command comes from."""
    if entry.name in EXTRAS and entry.value.startswith("prunus_"):
        return f"Comes with the extra: pip install 'prunus[{EXTRAS[entry.name]}]'"
    return f"From the package {entry.dist.name}." if entry.dist else f"From {entry.value}."


def _usage(error: click.ClickException) -> int:
    """Print a usage error as one line; a bare group shows its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "prunus"
    say(f"{path}: {one_line(error.format_message())} Try '{path} --help'.")
    return 2


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        try:
            click.echo(f"prunus {version('prunus')}")
        except PackageNotFoundError:
            from ..core.version import __version__

            click.echo(f"prunus {__version__}")
        ctx.exit()


@click.group("prunus", cls=App, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Turn web pages into exactly the evidence that a question needs.

    \b
    Examples:
      prunus clean examples/site/faq.html --format markdown
      prunus prune examples/site -Q "What does one Pell 2 cost?" --budget 512
      prunus ask "How long is the Pell 2 guaranteed?" examples/site

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a bug, 2 bad input or usage,
    3 an outside service failed, 4 nothing relevant found, 5 done in part, 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of files need not be Unicode, and pages are UTF-8
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(guard(lambda: int(app.main(prog_name="prunus", standalone_mode=False) or 0)))
