# The one list of commands; `make` shows them.
VENV := .venv
PYTHON := $(VENV)/bin/python
PYTEST := $(VENV)/bin/python -m pytest

# Commands and tests start hundreds of Python processes: each compiles no module anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/installed: pyproject.toml requirements-dev.txt
	@python3 -c 'import sys; sys.exit("sds-monitor needs Python 3.11 or newer, python3 is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes --requirement requirements-dev.txt
	PYTHONWARNINGS='ignore:Editable installation' SDS_MONITOR_CORE=interpreted \
		$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: install
install: core ## Virtual environment, dependencies, compiled rules, broker, archives
	@$(VENV)/bin/sds-monitor prepare

.PHONY: core
core: $(VENV)/installed ## Compile the rules, unless these sources are compiled (30 s)
	@$(PYTHON) -m compiler || [ $$? -eq 3 ] # No compiler: they run interpreted.

.PHONY: demo
demo: core ## Real traffic through the whole product, truth beside findings
	$(VENV)/bin/sds-monitor demo

# The quick tests need no program beside Python.
UNIT := not (kafka or spark or browser or node or needs or slow or long)
# More than cores: most of these tests wait for another program most of their time.
WORKERS := 5
report = $(if $(REPORTS),--junitxml=$(REPORTS)/$@.xml)
# A command that tries failed tests once more, if CI has one; $1: its environment.
again = $(if $(AGAIN),|| { [ $$? -eq 1 ] && $1 $(AGAIN); })

.PHONY: test
test: test-unit test-core test-rest test-alone ## All tests, with real Kafka, Spark and Chromium

.PHONY: test-unit
test-unit: $(VENV)/installed ## The quick tests: no Kafka, Spark, Node, browser, Prometheus
	SDS_MONITOR_CORE=interpreted $(PYTEST) -n 3 --maxfail=3 -m "$(UNIT)" $(report) $(PYTEST_OPTIONS) \
		$(call again,SDS_MONITOR_CORE=interpreted)

# The rules once more, compiled; the tests after these run them compiled, too.
.PHONY: test-core
test-core: test-unit core
	SDS_MONITOR_CORE=compiled $(PYTEST) -n 3 --maxfail=3 -m "$(UNIT)" $(report) \
		$(PYTEST_OPTIONS) tests/sds_core/observer tests/hostile tests/accuracy tests/golden \
		$(call again,SDS_MONITOR_CORE=compiled)

# Each worker collects all tests of the modules that it is given.
MARKED = $(sort $(shell grep -rlE --include='test_*.py' 'mark\.(kafka|spark|browser|node|needs|slow)' tests))
.PHONY: test-rest
test-rest: test-core
	@tools/install-test-programs || true
	@$(VENV)/bin/sds-monitor prepare || true
	$(PYTEST) -n $(WORKERS) -m "not ($(UNIT)) and not alone and not long" $(report) $(PYTEST_OPTIONS) \
		$(MARKED) $(call again)

ALONE := tests/e2e
.PHONY: test-alone
test-alone: test-rest
	$(PYTEST) -n 2 -m alone $(report) $(PYTEST_OPTIONS) $(ALONE) $(call again)

.PHONY: test-long
test-long: install ## Tests that take minutes each: kills, outages, hostile traffic, a cluster, the chart (long)
	@tools/install-test-programs --long || true
	$(PYTEST) -n 2 -m long $(report) $(PYTEST_OPTIONS)

.PHONY: check
check: install lint type docs ## What CI checks beside the tests

.PHONY: lint
lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/lint-imports
	@if command -v vale >/dev/null; then $(MAKE) words; \
		else echo "vale is missing: words are not checked"; fi

.PHONY: words
words: $(VENV)/installed ## Words and sentences of documents, help, page, errors and docstrings (KINDS=docstring)
	$(PYTHON) -m docs.words $(KINDS)

.PHONY: type
type: install
	$(VENV)/bin/mypy

.PHONY: format
format: install ## Rewrite the code in the house's style
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

.PHONY: dashboards
dashboards: install ## Dashboards, rules and the list of alerts, made anew
	$(PYTHON) -m dashboards.build
	$(PYTHON) -m docs.make_alerts

.PHONY: chart
chart: install ## Schema of the Helm chart's values, and the manifest made of the chart
	$(PYTHON) -m deploy.make_chart

.PHONY: docs-tables
docs-tables: install ## Pages and parts of pages that are made from the code
	$(PYTHON) -m docs.make_cli
	$(PYTHON) -m docs.make_metrics
	$(PYTHON) -m docs.make_history
	$(PYTHON) -m docs.make_api
	$(PYTHON) -m docs.make_rules
	$(PYTHON) -m docs.make_gap_states
	$(PYTHON) -m docs.make_trace
	$(PYTHON) -m docs.make_packages
	$(PYTHON) -m docs.make_guarantees
	$(PYTHON) -m docs.make_performance
	$(PYTHON) -m docs.make_commands

# Broken links and pages that the navigation lacks end it.
.PHONY: docs
docs: install ## The documentation as a site with search: artifacts/site/index.html
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs --quiet build --strict

.PHONY: screenshots
screenshots: install ## Pictures of the status page, from a demo of its own
	$(PYTHON) -m docs.make_screenshots

.PHONY: accuracy
accuracy: install ## Monitor beside the truth of all scenarios: docs/accuracy.md (SEEDS=12)
	$(PYTHON) -m docs.make_accuracy $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: accuracy-hours
accuracy-hours: install ## The same over eight hours: docs/accuracy-hours.md (SEEDS=2)
	$(PYTHON) -m docs.make_accuracy_hours $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: ablation
ablation: install ## What each kind of repair brings: docs/reliable-channel.md (3 min)
	$(PYTHON) -m docs.make_ablation

.PHONY: mvds-delivery
mvds-delivery: install ## What a delivery by MVDS takes at each loss: docs/mvds.md (2 min)
	$(PYTHON) -m docs.make_mvds_delivery

.PHONY: sync-bench
sync-bench: install ## Synchronisation beside other ways: docs/sync.md (5 min, uses cargo)
	$(PYTHON) -m docs.make_sync

.PHONY: bench
bench: install ## The job beside other ways to read a topic: docs/performance.md (30 min)
	$(PYTHON) -m benchmarks $(BENCH_OPTIONS)

.PHONY: bench-guard
bench-guard: install ## Ratios of speed against the published ones, without Spark (1 min)
	$(PYTHON) -m benchmarks.guard

.PHONY: mutation
mutation: install ## Does a test notice each small change of the participant? (long)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --group mutation
	$(VENV)/bin/mutmut run
	$(VENV)/bin/mutmut export-cicd-stats
	$(PYTHON) -m docs.make_mutation
	$(PYTHON) -m docs.make_rules

.PHONY: rule-mutation
rule-mutation: install ## Do each rule's own tests notice when it is broken? (minutes)
	$(PYTHON) -m docs.make_rule_mutation
	$(PYTHON) -m docs.make_rules

.PHONY: promise-mutation
promise-mutation: install ## Does a test of each promise notice when it is broken? (two hours)
	$(PYTHON) -m docs.make_promise_mutation
	$(PYTHON) -m docs.make_guarantees

.PHONY: core-mutation
core-mutation: install ## Do the tests notice when a compiled rule is broken? (half an hour)
	$(PYTHON) -m docs.make_core_mutation

.PHONY: fuzz
fuzz: install ## Decoders under hostile inputs: docs/guarantees.md (MINUTES=10 SEED=1)
	$(PYTHON) -m tests.support.fuzz --figures artifacts/fuzz.json \
		--minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
	$(PYTHON) -m docs.make_guarantees artifacts/fuzz.json

.PHONY: fuzz-asan
fuzz-asan: install ## The same, the rules compiled with AddressSanitizer (MINUTES=10 SEED=1)
	$(PYTHON) -m tests.support.fuzz.asan --figures artifacts/fuzz-asan.json \
		--minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
	$(PYTHON) -m docs.make_guarantees artifacts/fuzz-asan.json

.PHONY: fuzz-guided
fuzz-guided: install ## Decoders under inputs guided by coverage, with Atheris (MINUTES=10)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --group fuzz
	$(PYTHON) -m tests.support.fuzz --guided --minutes $(or $(MINUTES),10)

.PHONY: chaos
chaos: install ## Kill every process again and again: docs/guarantees.md (KILLS=20 SEED=1 JOBS=1)
	$(PYTHON) -m tests.support.chaos --figures artifacts/chaos.json \
		--kills $(or $(KILLS),20) --jobs $(or $(JOBS),1) $(if $(SEED),--seed $(SEED))
	$(PYTHON) -m docs.make_guarantees artifacts/chaos.json

.PHONY: soak
soak: install ## What grows in a long run: artifacts/soak/soak.json (MINUTES=60 SEED=1)
	$(PYTHON) -m benchmarks.soak --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

.PHONY: away
away: install ## Kafka away for 5 minutes, with default timeouts (SECONDS=300)
	SDS_MONITOR_AWAY_SECONDS=$(or $(SECONDS),300) $(PYTEST) -s \
		tests/streaming/test_kafka_away.py -k until_it_is_back

.PHONY: alert-speeds
alert-speeds: install ## Alerts of `unrepaired` at several speeds and clocks of taps, in real time: 45 minutes
	$(PYTHON) -m tests.support.alert_speeds

.PHONY: recording
recording: ## Make the shipped recording again (needs Node 20 and xz)
	cd tools/recording && npm ci --silent && npm run --silent record

.PHONY: supply-chain
supply-chain: install
	@$(VENV)/bin/pip install --quiet --constraint constraints.txt --group supply-chain

PINS = $(VENV)/bin/uv --quiet pip compile --python-version 3.11 --no-annotate --no-header \
	--extra dashboards --extra plan pyproject.toml

.PHONY: constraints
constraints: supply-chain ## Pin every dependency at its newest allowed version
	$(PINS) --upgrade $(addprefix --group ,dev fuzz mutation supply-chain) --output-file constraints.txt
	@$(MAKE) locks

.PHONY: locks
locks: supply-chain ## Hashes of what constraints.txt pins, in the files that pip installs
	$(PINS) --generate-hashes --constraint constraints.txt --output-file requirements.txt
	$(PINS) --generate-hashes --constraint constraints.txt --output-file requirements-dev.txt --group dev

.PHONY: version
version: ## Write VERSION into every file that names it: make version VERSION=1.0.0
	@[ -n '$(VERSION)' ] || { echo 'VERSION is missing: make version VERSION=1.0.0' >&2; exit 2; }
	sed -i -E 's/^version = ".*"$$/version = "$(VERSION)"/' pyproject.toml deploy/sds-core/pyproject.toml
	sed -i -E 's/^(version|appVersion|date-released): .*/\1: @\1/' CITATION.cff deploy/helm/sds-monitor/Chart.yaml
	sed -i -e 's/@version/$(VERSION)/' -e 's/@appVersion/"$(VERSION)"/' -e "s/@date-released/$$(date -u +%F)/" \
		CITATION.cff deploy/helm/sds-monitor/Chart.yaml
	sed -i -E 's/(sds-monitor(-spark)?):[0-9.]+[0-9]/\1:$(VERSION)/g' \
		docker-compose.yml deploy/kubernetes/Dockerfile docs/kubernetes.md
	$(PYTHON) -m deploy.make_chart

.PHONY: dist
dist: install ## Wheels and source distributions of sds-monitor and sds-core: dist/
	SDS_MONITOR_CORE=$(or $(SDS_MONITOR_CORE),interpreted) $(PYTHON) -m build --outdir dist .
	$(PYTHON) -m build --outdir dist deploy/sds-core
	cd dist && sha256sum *.whl *.tar.gz >SHA256SUMS

.PHONY: sbom
sbom: supply-chain ## Bill of materials of the monitor as CycloneDX: artifacts/sbom.json
	@mkdir -p artifacts
	$(VENV)/bin/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml \
		--mc-type application --output-file artifacts/sbom.json requirements.txt

.PHONY: advisories
advisories: supply-chain ## Known vulnerabilities of all dependencies, asked of a service
	$(VENV)/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements-dev.txt
	cd tools/recording && npm audit
