# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The build hook: hatchling's world on one side, a checked table and a list of packages on the other."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import posixpath
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from .budgets import wheel_over_budget
from .build import build_packages, make_units
from .config import HOOK, Config
from .editable import EDITABLE_FILE, describe_editable, hook_table
from .errors import CompilationError, ConfigurationError, CudaKernelsError, CudaKernelsWarning, first_line, numbered
from .installed import is_installed
from .manifest import DIRECTORY, MANIFEST_FILE
from .modules import ModuleSpec, ShippedPackage, find_modules
from .progress import Progress, is_live
from .sbom import SBOM_FILE
from .sources import source_text, walk_files
from .staging import Staging
from .toolchain import required_distributions
from .worker import no_worker

__all__ = ["CudaKernelsHook", "hook_of"]

_COARSEST = 2.0
"""Seconds that the time of a file may be behind, on the coarsest of file systems."""
_INTERRUPTED = 130
"""Exit status of what Ctrl-C ended, as shells give it."""


class CudaKernelsHook(BuildHookInterface[Any]):  # type: ignore[misc, unused-ignore]
    """Compiles a project's CUDA sources into its wheel. See docs/reference/options.md for the hook table."""

    PLUGIN_NAME = HOOK

    _staging: Staging | None = None
    _compiled: Mapping[str, str] = {}
    """Label of each source that was compiled -> the beginning of its digest in hex."""
    _begun = 0.0

    # -- what hatchling calls ------------------------------------------------------------------------------------

    def dependencies(self) -> list[str]:
        """What an isolated build installs to compile: only for wheels."""
        if self.target_name != "wheel":
            return []
        with self._one_message():
            config = self._config()
            linked = any(module.linked for module in config.modules)
            mentions = {"curand": self._mentions(b"curand"), "nvjitlink": linked}
            return required_distributions(config.cuda, config.nvrtc, mentions)
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile and hand the files to the wheel, or check what an sdist holds."""
        with self._one_message() as reporter:
            _check_source_date_epoch()
            if self.target_name == "sdist":
                self._check_sdist()
            elif self.target_name == "wheel":
                self._staging, self._begun = Staging(), time.time()
                if version == "editable":
                    self._add_editable(build_data)
                else:
                    self._add_images(build_data, reporter)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files that the wheel has by now, and the wheel too where it is over its budget."""
        self._remove_staging()
        if self.target_name != "wheel":
            return
        with self._one_message() as reporter:
            if changed := self._changed():
                reporter.warning(
                    f"{', '.join(changed)}: changed while the wheel was built, which has the images of what was there "
                    "before; build again"
                )
            config = self._config()
            over = wheel_over_budget(config, os.path.getsize(artifact_path))
            if over and config.over_budget == "error":
                os.remove(artifact_path)
                raise CompilationError(over)
            if over:
                reporter.warning(over)

    def declared(self) -> tuple[Config, list[ModuleSpec]]:
        """The checked hook table and the modules, for what looks at a project without a build."""
        config = self._config()
        return config, self._modules(config, self._packages())

    # -- the parts -----------------------------------------------------------------------------------------------

    def _add_images(self, build_data: dict[str, Any], reporter: _Reporter) -> None:
        config = self._config()
        packages = self._packages()
        folders = {package.name: package.folder for package in packages}
        staging, included = self._staging, build_data["force_include"]
        assert staging is not None

        @functools.cache
        def beside(package: str) -> str:
            return posixpath.dirname(self._target(package, folders[package], posixpath.join(DIRECTORY, MANIFEST_FILE)))

        def put(package: str, path: str, pieces: Iterable[bytes]) -> None:
            folder, _, name = path.rpartition("/")
            if folder == DIRECTORY:  # thousands, perhaps: hatchling is told of their folder alone
                here = f"{package}/beside/{name}"
                if name != MANIFEST_FILE:
                    staging.add(here, b"".join(pieces))
                else:
                    included[os.path.dirname(staging.stream(here, pieces))] = beside(package)
            else:
                target = self._target(package, folders[package], path)
                included[staging.add(f"{package}/below/{path}", b"".join(pieces))] = target

        self._warn_of_cache(config, packages, reporter)
        specs = self._modules(config, packages)
        documents = build_packages(config, Path(self.root), specs, where=self._where, reporter=reporter, put=put)
        with closing(documents):
            self._compiled = dict(documents.sources())
            if "sbom_files" in build_data:  # hatchling 1.28 and newer
                document = documents.bill_of_materials(self.metadata.core.raw_name, self.metadata.version)
                build_data["sbom_files"].append(staging.stream(SBOM_FILE, document))
        if config.jit and any(module.linked for module in config.modules) and not self._depends_on("nvjitlink"):
            reporter.warning(
                'the run-time fallback of modules of several sources needs nvJitLink; add "cuda-toolkit[nvjitlink]" to '
                "the project's dependencies, or set jit = false"
            )

    def _target(self, package: str, folder: str, path: str) -> str:
        """The path that ends up as `package/path` once hatchling has applied its `sources` rewriting."""
        wanted = posixpath.join(package.replace(".", "/"), path)
        for candidate in (wanted, posixpath.join(folder, path)):
            if self.build_config.get_distribution_path(candidate.replace("/", os.sep)).replace(os.sep, "/") == wanted:
                return candidate
        raise ConfigurationError(f"the `sources` rewriting of the wheel target leaves no way to put a file at {wanted}")

    def _add_editable(self, build_data: dict[str, Any]) -> None:
        config = self._config()
        packages = self._packages()
        specs = self._modules(config, packages)
        make_units(Path(self.root), specs)
        assert self._staging is not None
        staged = self._staging.add("editable.json", describe_editable(Path(self.root), packages, specs))
        build_data["extra_metadata"][staged] = EDITABLE_FILE

    def _check_sdist(self) -> None:
        """Every project header that a source can reach has to be in the sdist, where the tree has it."""
        config = self._config()
        packages = self._packages()
        specs = self._modules(config, packages)
        units = make_units(Path(self.root), specs)
        builder = self.build_config.builder
        shipped = {file.relative_path.replace(os.sep, "/") for file in builder.recurse_included_files()}
        problems = {
            f"{label} is reached from {unit.source} and is left out": None
            for whole in units
            for unit in whole.parts or (whole,)
            for label in unit.closure.files
            if label not in shipped and not label.startswith("../") and not is_installed(label, Path(self.root))
        }
        problems |= {
            f"{label} is reached from {unit.source} and lies outside the project": None
            for whole in units
            for unit in whole.parts or (whole,)
            for label in unit.closure.files
            if label.startswith("../")
        }
        if problems:
            raise ConfigurationError(
                numbered("the sdist could not build the same wheel; add to [tool.hatch.build.targets.sdist]:", problems)
            )

    # -- hatchling's view of the project -------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        """Key path of the hook table, as the author wrote it."""
        wheel = self.metadata.hatch.build_targets.get("wheel", {})
        inner = "build.targets.wheel.hooks" if HOOK in wheel.get("hooks", {}) else "build.hooks"
        alone = Path(self.root, "hatch.toml").is_file() and HOOK not in json.dumps(
            self.metadata.config.get("tool", {}).get("hatch", {}).get("build", {}), default=str
        )
        return f"{inner}.{HOOK}" if alone else f"tool.hatch.{inner}.{HOOK}"

    def _config(self) -> Config:
        return Config.from_table(hook_table(self.config), where=self._where, environ=os.environ)

    def _modules(self, config: Config, packages: list[ShippedPackage]) -> list[ModuleSpec]:
        def ships_folder(folder: str) -> bool:
            return not self.build_config.path_is_excluded(posixpath.join(folder, "module.py").replace("/", os.sep))

        return find_modules(config, Path(self.root), packages, where=self._where, ships_folder=ships_folder)

    def _packages(self) -> list[ShippedPackage]:
        """The topmost packages that the wheel ships. A folder below the wheel's root is one too, where it has no
        `__init__.py` anywhere above: a namespace package is left to what lies in it."""
        found: dict[str, str] = {}
        forced = (target.replace(os.sep, "/").split("/") for target in self.build_config.force_include.values())
        clashes = {posixpath.join(*parts[: parts.index(DIRECTORY) + 1]): None for parts in forced if DIRECTORY in parts}
        for relative, distributed in self._wheel_files():
            parts = distributed.split("/")
            if DIRECTORY in parts[:-1]:
                clashes[posixpath.join(*parts[: parts.index(DIRECTORY) + 1])] = None
            if parts[-1] == "__init__.py" and len(parts) > 1:
                found[posixpath.dirname(distributed)] = posixpath.dirname(relative)
        if clashes:
            raise ConfigurationError(
                f"{', '.join(clashes)}: the wheel already has files where this hook puts its own; remove them"
            )
        named = str(self.config.get("package", "")).replace(".", "/")
        topmost = {
            path: folder
            for path, folder in found.items()
            if path == named or not any(path.startswith(f"{other}/") for other in found)
        }
        if not topmost:
            for relative, distributed in self._wheel_files():
                first, _, rest = distributed.partition("/")
                if rest and first.isidentifier() and relative.endswith(f"/{rest}"):
                    topmost[first] = relative[: -len(rest) - 1]
        return [ShippedPackage(name=path.replace("/", "."), folder=folder) for path, folder in sorted(topmost.items())]

    def _wheel_files(self) -> Iterator[tuple[str, str]]:
        """(path from the root, path in the wheel) of the project files that the wheel ships."""
        builder = self.build_config.builder
        if self.target_name != "wheel":
            from hatchling.builders.wheel import WheelBuilder

            builder = WheelBuilder(self.root, metadata=self.metadata, app=self.app)
        for file in builder.recurse_selected_project_files():
            if file.relative_path:
                yield file.relative_path.replace(os.sep, "/"), file.distribution_path.replace(os.sep, "/")

    def _depends_on(self, word: str) -> bool:
        """Whether some dependency of the project, optional ones included, has that word."""
        core = self.metadata.core
        groups = [core.dependencies, *core.optional_dependencies.values()]
        return any(word in name for names in groups for name in names)

    def _mentions(self, word: bytes) -> bool:
        """Whether some CUDA source or header of the project has that word."""
        suffixes = (".cu", ".cuh", ".h", ".hpp", ".inl", ".inc")
        for path in walk_files(Path(self.root)):
            if path.endswith(suffixes):
                with suppress(OSError):
                    if Path(self.root, path).is_file() and word in Path(self.root, path).read_bytes():
                        return True
        return False

    # -- endings -------------------------------------------------------------------------------------------------

    @contextmanager
    def _one_message(self) -> Iterator[_Reporter]:
        """Typed errors end the build with their message alone; nothing of ours stays behind."""
        reporter = _Reporter(self.app)
        with _terminable(), warnings.catch_warnings():
            shown = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *rest: Any, **options: Any) -> None:
                if issubclass(category, CudaKernelsWarning):
                    reporter.warning(str(message))
                else:
                    shown(message, category, *rest, **options)

            warnings.showwarning = show
            try:
                yield reporter
            except (CudaKernelsError, OSError) as error:
                self._remove_staging()
                reporter.close()
                self.app.abort(f"{HOOK}: {error}")
            except RuntimeError as error:
                self._remove_staging()
                if "can't start new thread" not in str(error):
                    raise
                reporter.close()
                self.app.abort(f"{HOOK}: {no_worker(error)}")
            except KeyboardInterrupt:
                self._remove_staging()
                reporter.close()
                self.app.abort(f"{HOOK}: interrupted; images that were there are in the cache", code=_INTERRUPTED)
            except BaseException:
                self._remove_staging()
                raise
            finally:
                reporter.close()

    def _warn_of_cache(self, config: Config, packages: list[ShippedPackage], reporter: _Reporter) -> None:
        """A cache in a folder that the wheel ships would be in the wheel, another one in each."""
        for place in () if isinstance(config.cache, bool) else config.cache:
            if place.kind not in ("directory", "sqlite"):
                continue
            path = os.path.relpath(place.at(Path(self.root)).value, self.root).replace(os.sep, "/")
            shipped = any(f"{path}/".startswith(f"{package.folder}/") for package in packages)
            if shipped:
                inside = posixpath.join(path, "entries") if place.kind == "directory" else path
                if not self.build_config.path_is_excluded(inside.replace("/", os.sep)):
                    reporter.warning(
                        f"the cache at {place} lies in what the wheel ships, and would be in the wheel; name a place "
                        "outside of the package, or leave it out with the key exclude of the wheel target"
                    )

    def _changed(self) -> list[str]:
        """Those compiled files of the project that are others by now: hatchling packs them after they were compiled."""
        found = []
        for label, digest in self._compiled.items():
            path = Path(self.root, label)
            with suppress(OSError):
                if path.stat().st_mtime >= self._begun - _COARSEST:
                    data = source_text(path.read_bytes())
                    if not hashlib.sha256(data).hexdigest().startswith(digest):
                        found.append(label)
        return found

    def _remove_staging(self) -> None:
        if self._staging is not None:
            self._staging.remove()
            self._staging = None


def hook_of(root: Path) -> CudaKernelsHook:
    """The hook of the wheel of the project at `root`. Raises ConfigurationError where it has none."""
    from hatchling.builders.wheel import WheelBuilder

    try:
        hooks = WheelBuilder(str(root)).get_build_hooks(str(root / "dist"))
    except (OSError, ValueError, TypeError) as error:  # as hatchling says that a project's tables are not right
        raise ConfigurationError(f"{root}: hatchling cannot read this project ({first_line(error)})") from None
    hook = hooks.get(HOOK)
    if not isinstance(hook, CudaKernelsHook):
        raise ConfigurationError(f"{root}: its pyproject.toml has no [tool.hatch.build.hooks.{HOOK}]")
    return hook


class _Reporter:
    """hatchling's display, which goes to standard error and knows its verbosity."""

    def __init__(self, app: Any) -> None:
        self._app = app
        live = sys.stderr if app.verbosity == 0 and is_live(sys.stderr) else None
        self._progress = Progress(HOOK, app.display_info, live)

    def info(self, message: str) -> None:
        """Shown at the default verbosity."""
        self._progress.clear()
        self._app.display_info(f"{HOOK}: {message}")

    def step(self, done: int, total: int, what: str) -> None:
        """A line that moves on a terminal, at the default verbosity; else a line of its own."""
        self._progress.step(done, total, what)

    def warning(self, message: str) -> None:
        """Shown with one `-q` too."""
        self._progress.clear()
        self._app.display_warning(f"{HOOK}: warning: {message}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._progress.clear()


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, and the SIGHUP of a terminal that closes, unwind the stack: workers and temporary files go first."""

    def leave(number: int, frame: object) -> None:
        for each in taken:
            signal.signal(each, signal.SIG_IGN)  # once is enough, and what follows is to be done in peace
        raise SystemExit(128 + number)

    ours = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
    taken = [number for number in dict.fromkeys(ours) if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        taken = []  # Python lets no other thread say what signals do
    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _check_source_date_epoch(environ: Mapping[str, str] = os.environ) -> None:
    """hatchling fails without a word of explanation on a value that a zip file cannot hold."""
    text = environ.get("SOURCE_DATE_EPOCH")
    if text and not (text.isascii() and text.isdigit() and int(text) < 2**32):
        raise ConfigurationError(f"SOURCE_DATE_EPOCH: {text!r} is no time in seconds since 1970 that a wheel can hold")
