"""`trident`: finds the command, imports only that one, and turns errors into one line and an exit code.

Exit codes: 0 success, 1 a bug in Trident, 2 wrong usage, 3 unreadable or foreign input, 4 a damaged store or
a failed verification, 5 a plugin that cannot be used, 130 interrupted.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from trident_core.cli import entry, waiting
from trident_core.cli.names import COMMANDS
from trident_core.cli.output import discard_output, print_error
from trident_core.errors import InputError, TridentError

EXIT_INTERRUPTED: Final = 130
NO_PLUGINS: Final = "--no-plugins"
#: How long --help waits for the plugins of strangers, for each at most half of it, s.
HELP_WAITS_S: Final = 0.2


def main() -> None:
    """Run the command that `sys.argv` names. The script's entry point is `trident_core.cli.entry:main`."""
    entry.open_streams()
    entry.interrupts_end_the_process()
    waiting.begin()
    if NO_PLUGINS in sys.argv:  # anywhere; in the environment, so that processes of ours go without, too
        sys.argv.remove(NO_PLUGINS)
        os.environ["TRIDENT_PLUGINS"] = ""
    try:
        build(sys.argv[1:])()
    except TridentError as error:
        _fail(error)
    except OSError as error:  # of --help and the like: standard output
        _fail(_refused(error))


def build(argv: list[str]) -> typer.Typer:
    """The application. Only the command that `argv` names is imported; the others are names."""
    app = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        help="Market data in, order books, a durable store and answers, through engines anyone can swap.",
        epilog="Exit codes: 0 success, 1 bug, 2 usage, 3 input, 4 store, 5 plugin, 130 interrupted. "
        "TRIDENT_DEBUG=1 shows tracebacks.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_options)
    wanted = next((word for word in argv if not word.startswith("-")), "")
    commands = {name: (target, summary) for name, (target, summary) in COMMANDS.items()}
    if wanted not in commands:  # --help, or a command of a plugin
        commands |= _of_plugins(app, wanted)
    for name, (target, summary) in commands.items():
        function = _load(target, name) if name == wanted else _placeholder
        app.command(name, short_help=summary, help=None if name == wanted else summary)(guard(function))
    return app


def _of_plugins(app: typer.Typer, wanted: str) -> dict[str, tuple[str, str]]:
    """The commands of plugins: name -> (target, summary). Help does not wait for plugins that are slow."""
    from trident_core.plugins import registry
    from trident_core.strangers import Budget

    found = registry()
    found.complete(None if wanted else Budget(limit=HELP_WAITS_S / 2, total=HELP_WAITS_S))
    late = ", ".join(entry.plugin for entry in found.gave_up_on)
    if late and not wanted:
        app.info.epilog = f"{app.info.epilog} Not loaded in time: {late} (`trident plugins` waits longer)."
    return {spec.name: (spec.target, spec.summary) for spec in found.commands()}


def _print_version(wanted: bool) -> None:
    if wanted:
        from trident_core import __version__

        print(f"trident {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    no_plugins: Annotated[
        bool,
        typer.Option(
            NO_PLUGINS,
            help="Load no plugin but the project's own. TRIDENT_PLUGINS=a,b loads only these.",
        ),
    ] = False,
) -> None:
    """Options of `trident` itself."""


def _placeholder() -> None:
    """Stands for a command that was not asked for."""


def _load(target: str, name: str) -> Callable[..., None]:
    """The function behind a command. Raises PluginError when it cannot be imported."""
    from trident_core.errors import PluginError

    module, _, attribute = target.partition(":")
    try:
        function: Callable[..., None] = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a plugin's module may raise anything
        raise PluginError(
            f"command {name!r} cannot be loaded from {target}: {error!r}", hint="`trident plugins` lists it"
        ) from error
    return function


def guard(function: Callable[..., None]) -> Callable[..., None]:
    """Errors of `function` become one line on stderr and an exit code."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        entry.interrupts_raise()
        try:
            function(*args, **kwargs)
            sys.stdout.flush()
        except TridentError as error:
            _fail(error)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:  # the reader of our output has gone (| head): not an error of ours
            discard_output()
            raise typer.Exit(0) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except OSError as error:
            _fail(_refused(error))
        except Exception as error:
            if os.environ.get("TRIDENT_DEBUG", "0") not in ("", "0"):
                raise
            print(f"error: a bug in Trident: {error!r}", file=sys.stderr)
            print("hint: set TRIDENT_DEBUG=1 for the traceback, and please report it", file=sys.stderr)
            raise typer.Exit(1) from None
        finally:
            _tell_of_slow_plugins()
            entry.interrupts_end_the_process()

    return guarded


def _tell_of_slow_plugins() -> None:
    """Why the command took seconds longer than it should."""
    plugins = sys.modules.get("trident_core.plugins")
    if plugins and plugins.registry.cache_info().currsize:
        for entry_ in plugins.registry().gave_up_on:
            print(
                f"note: plugin {entry_.plugin!r} of {entry_.distribution}: {entry_.reason}; {entry_.hint}",
                file=sys.stderr,
            )


def _refused(error: OSError) -> InputError:
    """What the operating system refused, for the user: no engine has made more of it."""
    reason = error.strerror or str(error)
    if error.filename is None:
        made = InputError(reason, hint="is the disk, or what the output goes to, full or gone?")
    else:
        made = InputError(f"{os.fsdecode(error.filename)}: {reason}", hint="is the name what you meant?")
    made.__cause__ = error
    return made


def _fail(error: TridentError) -> None:
    if os.environ.get("TRIDENT_DEBUG", "0") not in ("", "0"):
        raise error
    print_error(error)
    with suppress(OSError):
        sys.stdout.flush()
    discard_output()  # what cannot be flushed would be tried again, and complained of, at exit
    raise SystemExit(error.exit_code)
