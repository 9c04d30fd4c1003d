# Everything here sets itself up: Python 3.11 or newer and make are all it needs.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: demo test check peer xla fuzz soak conformance wheel install-check docs clean

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet -e '.[dev]'
	$(RUN) -m compileall -q -j 2 src tests
	$(RUN) tools/make_images.py --best || echo "no images for this machine: its first process compiles the runtime"
	touch $@

demo: $(VENV)/ready
	$(RUN) examples/demo.py

test: $(VENV)/ready
	$(RUN) -m pytest -n 2

check: $(VENV)/ready
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) tools/check_house.py

peer: $(VENV)/ready
	$(RUN) -m pip install --quiet jax
	$(RUN) -m pytest -n 2 -m peer

# XLA as an engine: its own tests, and those of programs that it must run as calque's compiler does.
xla: $(VENV)/ready
	$(RUN) -m pip install --quiet -e '.[dev,xla]'
	$(RUN) -m pytest -n 2 tests/xla
	CALQUE_PLATFORMS=xla_cpu $(RUN) -m pytest -n 2 tests/transforms/primitives \
		tests/transforms/functions tests/transforms/engines tests/control_flow \
		tests/compositions tests/lax tests/random

# Random programs of the whole interface, by the hour: make fuzz MINUTES=60 SEED=1
MINUTES ?= 60
SEED ?= $(shell date +%s)
fuzz: $(VENV)/ready
	$(RUN) -m tests.fuzz --programs 1000000 --minutes $(MINUTES) --seed $(SEED)
	$(RUN) -m tests.fuzz --chains --programs 1000000 --minutes $(MINUTES) --seed $(SEED)

# Memory stays flat and processes end well, by the thousand; then a small model is trained for an hour.
soak: $(VENV)/ready
	$(RUN) -m tests.soak --minutes $(MINUTES)

# Tests of JAX and of the libraries built on it, by a kit that is no part of calque: CONFORMANCE_KIT=dir
conformance:
	$(PYTHON) tools/conformance.py

# A wheel with images of the runtime for this Python and every level of x86-64 that this machine runs.
wheel: $(VENV)/ready
	$(RUN) tools/make_images.py
	rm -rf build/lib
	$(RUN) -m pip wheel --quiet --no-deps --wheel-dir dist .

# Such a wheel in a bare environment: what it holds, its megabytes and whose they are, how it starts.
install-check: $(VENV)/ready
	$(RUN) tools/make_images.py
	$(RUN) tools/check_install.py --images

# The site, in build/site and in Chinese in build/site/zh, with the API reference (tools/reference.py);
# warnings are errors. Search needs a server: python -m http.server -d build/site
docs: $(VENV)/ready
	$(RUN) -m pip install --quiet -e '.[docs]'
	rm -rf build/site.zh
	export NO_MKDOCS_2_WARNING=1; \
	$(RUN) -m mkdocs build --strict -f mkdocs.zh.yml -d build/site.zh & chinese=$$!; \
	$(RUN) -m mkdocs build --strict; english=$$?; \
	wait $$chinese && test $$english = 0
	mv build/site.zh build/site/zh

clean:
	rm -rf $(VENV) build dist src/calque/images *.egg-info .pytest_cache .mypy_cache .ruff_cache
