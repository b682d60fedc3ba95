"""One digest for all that kernels are made of: are these the kernels that a run was begun with?"""

from collections.abc import Mapping

from orchestrator.domain.digest import sha256_hex
from orchestrator.planning.kernel_folder import LoadedKernel

_SUFFIXES = (".py", ".j2", ".comp", ".glsl", ".slang")


def kernels_digest(kernels: Mapping[str, LoadedKernel]) -> str:
    """Of every source file in the kernels' own and shared folders, by name and content."""
    folders = {folder for kernel in kernels.values() for folder in kernel.template_folders if folder.is_dir()}
    lines = sorted(
        f"{folder.name}/{path.relative_to(folder)} {sha256_hex(path.read_bytes())}"
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file()
    )
    return sha256_hex("\n".join(lines).encode("utf-8", "surrogateescape"))
