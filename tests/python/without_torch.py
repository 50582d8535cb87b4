"""The package where PyTorch is missing: it says what there is, and what is lacking."""
import contextlib
import io
import re
import sys

sys.modules['torch'] = sys.modules['sentence_transformers'] = None  # importing them fails as if they were not installed

import fuseplan
from fuseplan import embed

found = fuseplan.doctor()
assert (found['torch'], found['gpu']) == (None, None), found
assert re.match(rf'fuseplan {re.escape(fuseplan.__version__)}( |$)', found['version']), found  # stated once
assert {'__version__', 'doctor', *fuseplan.__all__} <= set(dir(fuseplan)), dir(fuseplan)
assert 'worker' in [check['subject'] for check in found['checks']], found
try:
    fuseplan.optimize(None)
    raise AssertionError('no error')
except ModuleNotFoundError as error:
    assert str(error) == 'fuseplan.optimize needs PyTorch, which this Python does not have: pip install torch', error
sys.argv[1:] = ['model']
sys.stdin, said = io.TextIOWrapper(io.BytesIO()), io.StringIO()
try:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        embed.main()
    raise AssertionError('no error')
except SystemExit as error:
    assert error.code == 1, error
assert said.getvalue().startswith('fuseplan-embed: needs sentence-transformers, and this Python has no '), said
