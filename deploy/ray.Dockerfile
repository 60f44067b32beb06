# Ray with Prunus, for deploy/rayjob.yaml. Build from the root: docker build -f deploy/ray.Dockerfile -t prunus-ray:local .
# Driver and workers need the same Ray and the same Python, so all pods run this image.
FROM rayproject/ray:2.60.0-py312 AS build
WORKDIR /build
COPY requirements requirements
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
# without a compiler the wheel holds Python sources alone: slower, the same results
# hadolint ignore=DL3042
RUN pip install --require-hashes --target /tmp/tools -r requirements/dev.lock \
    && PRUNUS_PURE=1 PYTHONPATH=/tmp/tools python -m hatchling build -t wheel -d /tmp/dist

FROM rayproject/ray:2.60.0-py312
COPY --from=build /tmp/dist /tmp/dist
COPY requirements/all.txt /tmp/all.txt
# hadolint ignore=DL3042
RUN pip install -c /tmp/all.txt "$(ls /tmp/dist/*.whl)[ray,parquet,warc]" && pip check
