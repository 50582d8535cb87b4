"""The package where PyTorch is missing: it says what there is, and what is lacking."""
import sys

sys.modules['torch'] = None  # importing it fails as if it were not installed

import fuseplan

found = fuseplan.doctor()
assert (found['torch'], found['gpu']) == (None, None), found
assert 'worker' in [check['subject'] for check in found['checks']], found
try:
    fuseplan.optimize(None)
    raise AssertionError('no error')
except ModuleNotFoundError as error:
    assert str(error) == 'fuseplan.optimize needs PyTorch, which this Python does not have', error
