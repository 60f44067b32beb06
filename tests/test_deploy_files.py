"""The files in ``deploy/`` agree with the project: versions, extras, files, options, variables and routes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.extras import need

from prunus.cli.main import app
from prunus.core.settings import load_settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCKERFILE = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text("utf-8"))
UNIT = (DEPLOY / "prunus.service").read_text("utf-8")
PLAIN = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PIP_DISABLE_PIP_VERSION_CHECK"}


def lines(instruction: str) -> list[str]:
    return re.findall(rf"^{instruction} (.+)$", DOCKERFILE, re.MULTILINE)


def compose() -> Any:
    return need("yaml").safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def check_command(words: list[str]) -> dict[str, Any]:
    """Parse a command line of prunus without running it; return its options."""
    assert Path(words[0]).name == "prunus"
    with app.make_context("prunus", words[1:2]) as outer:
        serve = app.get_command(outer, words[1])
        assert serve is not None
        with serve.make_context(words[1], words[2:], parent=outer) as context:
            return context.params


def check_settings(variables: dict[str, str]) -> None:
    """Load variables as settings; an unknown one is an error."""
    filled = {name: re.sub(r"\$\{\w+:?[?-][^}]*\}", "x", value) for name, value in variables.items()}
    load_settings(environment={name: value for name, value in filled.items() if name not in PLAIN})


def test_the_image_has_a_python_that_the_project_supports_in_one_pinned_version() -> None:
    stages = [line.split()[0] for line in lines("FROM")]
    assert len(set(stages)) == 1 and len(stages) == 2
    version = re.fullmatch(r"python:(3\.\d+)\.\d+-slim-\w+", stages[0])
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_image_installs_extras_that_exist_in_locked_versions() -> None:
    [extras] = re.findall(r"\.whl\)\[([\w,-]+)\]", DOCKERFILE)
    assert set(extras.split(",")) == {"server", "postgres"} <= PROJECT["optional-dependencies"].keys()
    locks = re.findall(r"requirements/[\w.]+", DOCKERFILE)
    assert {"requirements/base.lock", "requirements/dev.lock", "requirements/all.txt"} == set(locks)
    pinned = (ROOT / "requirements" / "all.txt").read_text("utf-8")
    for extra in extras.split(","):
        for dependency in PROJECT["optional-dependencies"][extra]:
            [name] = re.findall(r"^[\w-]+", dependency)
            assert re.search(rf"^{name}(\[\w+\])?==", pinned, re.MULTILINE | re.IGNORECASE), name


def test_the_files_that_the_image_copies_exist_and_are_let_through() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for line in lines("COPY"):
        if line.startswith("--from"):
            continue
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignore, name
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert needed["packages"] == ["src/prunus"]


def test_the_image_runs_as_a_user_without_rights_and_keeps_its_state_in_a_volume() -> None:
    assert lines("USER") == ["10001:10001"]
    variables = dict(pair.split("=", 1) for line in lines("ENV") for pair in shlex.split(line))
    assert lines("VOLUME") == [variables["PRUNUS_HOME"]]
    check_settings(variables)


def test_the_commands_have_options_that_serve_knows() -> None:
    [image] = [json.loads(line) for line in lines("CMD")]
    in_image = check_command(image)
    assert in_image["host"] == "0.0.0.0" and str(in_image["port"]) in lines("EXPOSE")
    [started] = re.findall(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)
    assert check_command(shlex.split(started))["host"] == "127.0.0.1"


@pytest.mark.full
def test_the_health_check_asks_a_route_of_the_server() -> None:
    need("fastapi")
    from prunus.serve.app import create_app
    from prunus.serve.options import ServeOptions

    [url] = re.findall(r"urlopen\('([^']+)'", DOCKERFILE)
    address = urlsplit(url)
    assert str(address.port) in lines("EXPOSE")
    made = create_app(load_settings({"home": str(Path.home() / "served")}), ServeOptions())
    assert address.path in made.openapi()["paths"] or any(route.path == address.path for route in made.routes)
    made.state.server.state.close()


def test_the_service_gives_running_requests_their_time_and_may_write_one_folder() -> None:
    values = dict(re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE))
    assert int(values["TimeoutStopSec"]) > 30  # what the server itself waits
    [home] = re.findall(r"^Environment=PRUNUS_HOME=(.+)$", UNIT, re.MULTILINE)
    assert home == f"/var/lib/{values['StateDirectory']}"
    assert values["DynamicUser"] == values["NoNewPrivileges"] == "yes" and values["ProtectSystem"] == "strict"
    assert values["CapabilityBoundingSet"] == "" and "ReadWritePaths" not in values


# --- the compose file --------------------------------------------------------------------------------


@pytest.mark.full
def test_every_image_is_pinned_and_no_service_gains_rights() -> None:
    for name, service in compose()["services"].items():
        if "build" not in service:
            assert re.search(r":\d+\.\d+[\w.-]*$", service["image"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    prunus = compose()["services"]["prunus"]
    assert prunus["read_only"] is True and prunus["cap_drop"] == ["ALL"]
    assert prunus["ports"] == ["127.0.0.1:8080:8080"]
    assert (DEPLOY / prunus["build"]["context"] / prunus["build"]["dockerfile"]).is_file()


@pytest.mark.full
def test_the_compose_file_sets_settings_that_exist_and_starts_what_the_image_starts() -> None:
    prunus = compose()["services"]["prunus"]
    check_settings(prunus["environment"])
    assert check_command(prunus["command"]) == check_command(json.loads(lines("CMD")[0]))
    assert prunus["volumes"] == [f"state:{lines('VOLUME')[0]}"]
    assert int(prunus["stop_grace_period"].removesuffix("s")) > 30


@pytest.mark.full
def test_addresses_in_the_compose_file_are_those_of_its_services() -> None:
    services = compose()["services"]
    variables = services["prunus"]["environment"]
    hosts = {re.findall(r"(?:@|//)([a-z]+):\d+", value)[-1] for value in variables.values() if "//" in value}
    assert hosts == {"postgres", "searxng"} == set(services) - {"prunus"} == set(services["prunus"]["depends_on"])
    for host in hosts:
        assert set(services[host]["networks"]) & set(services["prunus"]["networks"])
    assert compose()["networks"]["inside"]["internal"] is True
    assert services["postgres"]["networks"] == ["inside"]


# --- batches ------------------------------------------------------------------------------------------


def ray_job() -> Any:
    return need("yaml").safe_load((DEPLOY / "rayjob.yaml").read_text("utf-8"))


def ray_image() -> str:
    return re.sub(r"\\\n\s*", "", (DEPLOY / "ray.Dockerfile").read_text("utf-8"))


@pytest.mark.full
def test_the_job_on_ray_has_the_parts_that_the_operator_wants() -> None:
    job = ray_job()
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    assert spec["shutdownAfterJobFinishes"] is True and spec["backoffLimit"] >= 1
    cluster = spec["rayClusterSpec"]
    [workers] = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    for group in (cluster["headGroupSpec"], workers):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        [container] = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert container["envFrom"] == [{"secretRef": {"name": "prunus-store"}}]
        assert container["image"] in (DEPLOY / "ray.Dockerfile").read_text("utf-8")


@pytest.mark.full
def test_the_job_on_ray_runs_a_batch_on_the_cluster_that_it_has() -> None:
    shell, flag, script = shlex.split(ray_job()["spec"]["entrypoint"])
    assert (shell, flag) == ("sh", "-c")
    options = check_command(shlex.split(script.partition(";")[0]))
    assert options["on"] == "ray:auto" and options["do"] == "clean" and options["to"] == "parquet"
    assert options["inputs"][0].startswith("s3://") and options["output"].startswith("s3://")


@pytest.mark.full
def test_all_pods_have_the_ray_of_the_tests_and_a_python_that_the_project_supports() -> None:
    bases = re.findall(r"^FROM rayproject/ray:([\d.]+)-py(\d)(\d+)", ray_image(), re.MULTILINE)
    assert len(bases) == 2 and len(set(bases)) == 1
    version, major, minor = bases[0]
    assert ray_job()["spec"]["rayClusterSpec"]["rayVersion"] == version
    assert f"\nray=={version}" in (ROOT / "requirements" / "all.txt").read_text("utf-8")
    assert f"Programming Language :: Python :: {major}.{minor}" in PROJECT["classifiers"]
    [extras] = re.findall(r"\.whl\)\[([\w,-]+)\]", ray_image())
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    for name in re.findall(r"^COPY ((?!--from).+) \S+$", ray_image(), re.MULTILINE):
        assert all((ROOT / path).exists() for path in name.split())


def test_a_batch_is_started_again_until_it_is_done(tmp_path: Path) -> None:
    """A stand-in for the program ends with one code after the other."""
    program = tmp_path / "prunus"
    program.write_text(
        '#!/bin/sh\necho "$@" >> "$0.calls"\nread code rest < "$0.codes"\necho "$rest" > "$0.codes"\nexit "$code"\n'
    )
    program.chmod(0o755)
    for codes, ended, calls in (("3 137 0", 0, 3), ("3 5", 5, 2), ("2", 2, 1), ("1 1 1 1", 1, 3)):
        (tmp_path / "prunus.codes").write_text(codes + "\n")
        (tmp_path / "prunus.calls").unlink(missing_ok=True)
        done = subprocess.run(
            ["sh", str(DEPLOY / "batch.sh"), "my crawl", "out", "--do", "clean"],
            env={"PATH": os.environ["PATH"], "PRUNUS": str(program), "PAUSE": "0", "TRIES": "3"},
            capture_output=True,
        )
        assert done.returncode == ended
        assert (tmp_path / "prunus.calls").read_text().splitlines() == ["batch my crawl -o out --do clean"] * calls


def test_no_secret_stands_in_the_files() -> None:
    text = "".join(path.read_text("utf-8") for path in DEPLOY.rglob("*") if path.is_file())
    secrets = re.findall(r'\w*(?:PASSWORD|SECRET|KEY)\w*[:=] *"?([^\s"]+)', re.sub(r"\$\{[^}]*\}", "$", text))
    assert len(secrets) == 3 and set(secrets) == {"$"}
    assert set(re.findall(r"://\w+:([^@\s]+?)@", re.sub(r"\$\{[^}]*\}", "$", text))) == {"$"}


@pytest.mark.full
def test_searxng_answers_in_json_and_lets_prunus_in() -> None:
    settings = need("yaml").safe_load((DEPLOY / "searxng" / "settings.yml").read_text("utf-8"))
    assert "json" in settings["search"]["formats"]
    assert settings["server"]["limiter"] is False
    assert "secret_key" not in settings["server"]
    mounted = compose()["services"]["searxng"]["volumes"][0].split(":")
    assert (DEPLOY / mounted[0]).is_file()


@pytest.mark.parametrize(
    "path",
    [
        path.relative_to(ROOT).as_posix()
        for path in sorted(DEPLOY.glob("[!.]*"))
        if path.suffix != ".dockerignore" and path.is_file()
    ],
)
def test_every_file_is_described(path: str) -> None:
    assert path in (ROOT / "docs" / "deploy.md").read_text("utf-8")
