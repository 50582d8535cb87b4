"""The package where PyTorch is missing: it says what there is, and what is lacking."""
import re
import sys

sys.modules['torch'] = None  # importing it fails as if it were not installed

import fuseplan

found = fuseplan.doctor()
assert (found['torch'], found['gpu']) == (None, None), found
assert re.match(rf'fuseplan {re.escape(fuseplan.__version__)}( |$)', found['version']), found  # stated once
assert {'__version__', 'doctor', *fuseplan.__all__} <= set(dir(fuseplan)), dir(fuseplan)
assert 'worker' in [check['subject'] for check in found['checks']], found
try:
    fuseplan.optimize(None)
    raise AssertionError('no error')
except ModuleNotFoundError as error:
    assert str(error) == 'fuseplan.optimize needs PyTorch, which this Python does not have', error
