"""The command ``prunus``: loads a subcommand when it is called, and turns every error into a line and an exit code."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from typing import Any, Final

import click

from ..core.errors import MissingExtra, PrunusError
from ..core.installation import pip_install_folder
from ..core.text.near import did_you_mean
from ..core.text.secrets import hide_secrets
from .output import forget_stdout, one_line, say

COMMANDS: Final = {
    "clean": "Clean pages: keep what a reader sees, drop the rest.",
    "metadata": "Show what pages say about themselves: title, authors, dates, …",
    "prune": "Keep the evidence for a question that fits a token budget.",
    "ask": "Answer a question from pages, with quotes that are checked.",
    "check": "Check the claims of a text against pages.",
    "replay": "Answer a recorded question again from its record.",
    "search": "Search the web or a folder, and list the hits.",
    "index": "Build a tree of summaries over documents, and search it.",
    "batch": "Run many jobs, or do the same with every page, and resume.",
    "fetch": "Fetch pages unchanged, within the configured limits.",
    "map": "List the addresses of a site.",
    "cache": "Show or clear the caches on disk.",
    "serve": "Serve Prunus over HTTP, and as a model to OpenAI's clients.",
    "mcp": "Give an assistant Prunus as tools, over the Model Context Protocol.",
    "trust": "Let the settings of a folder run code and use your keys.",
    "doctor": "Show the settings in force, and test the engines.",
    "completion": "Print the completion script of a shell.",
}
"""The commands of the folder ``commands``, one file each, in the order of the help."""

GROUP: Final = "prunus.commands"
"""The entry-point group of foreign commands; a foreign command cannot replace one of `COMMANDS`."""

GUESTS: Final = {"eval": "evals", "train": "train"}
"""Commands of other distributions of this repository → their folder; they are listed even where they are missing."""


class App(click.Group):
    """The group of all commands; loads a command when it is called, and ends with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the built-in commands, then the foreign commands."""
        return [*COMMANDS, *sorted({*GUESTS, *foreign_commands()})]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; a foreign command that cannot be imported reports this when it is invoked."""
        if cmd_name in COMMANDS:
            return _built_in(cmd_name)
        entry = foreign_commands().get(cmd_name)
        if entry is None and cmd_name in GUESTS:
            command = pip_install_folder(GUESTS[cmd_name])
            return _broken(cmd_name, MissingExtra(f"{cmd_name} is not installed; run: {command}", subject=cmd_name))
        return _load(entry) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown name say which one was meant."""
        names = self.list_commands(ctx)
        if not args[0].startswith("-") and args[0] not in names:
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], names) or '.'}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        packages = {name: f"prunus-{folder}" for name, folder in GUESTS.items()}
        packages |= {name: entry.dist.name if entry.dist else entry.value for name, entry in foreign_commands().items()}
        with formatter.section("Commands from other packages"):
            formatter.write_dl([(name, f"From the package {package}.") for name, package in sorted(packages.items())])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and exit with its code."""
        invoke = super().invoke

        def work() -> int:
            invoke(ctx)
            return 0

        ctx.exit(guard(work))


def guard(work: Callable[[], int]) -> int:
    """Call ``work`` and return its exit code; an expected error becomes one line on stderr."""
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
    except BrokenPipeError:  # as in `prunus … | head`: the reader stopped reading
        forget_stdout()
        return 0
    except Exception:  # a bug: its traceback belongs into the report of it
        click.echo(hide_secrets(traceback.format_exc()), err=True)
        return 1
    return code


def foreign_commands() -> dict[str, EntryPoint]:
    """Return the entry points of other packages' commands by name, not loaded."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in COMMANDS}


def _built_in(name: str) -> click.Command:
    command: click.Command = import_module(f"{__package__}.commands.{name}").command
    return command


def _load(entry: EntryPoint) -> click.Command:
    """Load a foreign command; where that fails, return a command that reports why."""
    try:
        command: click.Command = entry.load()
    except Exception as error:  # a broken foreign package must not break the other commands
        if isinstance(error, ModuleNotFoundError) and not _is_installed(error.name or ""):
            return _broken(entry.name, _missing(entry.name, error))
        reason = f"{type(error).__name__}: {error}"
        return _broken(entry.name, PrunusError(f"{entry.name}: this command cannot be loaded ({reason})"))
    return command


def _is_installed(module: str) -> bool:
    """Tell whether the package of a module is installed; the module may still be missing in it."""
    return find_spec(module.partition(".")[0]) is not None if module else True


def _missing(name: str, error: ImportError) -> MissingExtra:
    """Return the error for a package that is missing, with the line that installs it."""
    package = error.name or str(error)
    if name not in GUESTS:
        command = f"pip install {package.partition('.')[0]}"
    elif package.startswith("prunus_evals"):
        command = pip_install_folder("evals")
    else:
        command = pip_install_folder(GUESTS[name])
    return MissingExtra(f"{name} needs {package}, which is not installed; run: {command}", subject=name)


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


def _usage(error: click.ClickException) -> int:
    """Print a usage error as one line; a group without a command shows its help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # by name: older versions of click lack the class
        error.show()
        return 2
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "prunus"
    hint = ""
    if isinstance(error, click.NoSuchOption) and context is not None and not error.possibilities:
        known = [name for option in context.command.params for name in option.opts]
        hint = "".join(f" Did you mean {name!r}?" for name in known if name.lower() == error.option_name.lower())
    if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "question":
        hint = ' Write it as -q "When did it open?".'
    say(f"{path}: {one_line(error.format_message())}{hint} Try '{path} --help'.")
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
    """Turn web pages into the evidence that a question needs.

    \b
    Examples:
      prunus clean examples/site/faq.html --format markdown
      prunus prune examples/site -q "What does one Pell 2 cost?" --budget 512
      prunus ask "How long does slack water last at Dunnock Quay?" examples/site

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a bug, 2 bad input or usage,
    3 an outside service failed, 4 nothing relevant found, 5 done in part, 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a warning as one line."""
    say(f"prunus: {one_line(str(message))}")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a file's name need not be valid Unicode, and pages are UTF-8
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.showwarning = _say_warning
    sys.exit(guard(lambda: int(app.main(prog_name="prunus", standalone_mode=False) or 0)))
