#!/bin/sh
# dom.sh FUSEPLAN RESULTS: what a headless Chromium makes of a page of `fuseplan report`, in both colours and at two
# widths: no error, all charts, names and contrast as WCAG 2.1 asks, nothing wider than the window, nothing fetched.
set -eu
chromium=$(command -v chromium || command -v google-chrome) || {
  echo "skipped: there is no chromium on PATH; install chromium"
  exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" FUSEPLAN_DB="$dir/db"
"$1" db import "$2" -q >printed
sqlite3 db "UPDATE trial SET conditions = '{\"waited_share\": 0.43, \"other_cores\": 1, \"stopped_share\": 0}' WHERE kind = 'final' AND plan = 41115;
  UPDATE trial SET conditions = '{\"peak_flops_per_s\": 1e12, \"peak_bytes_per_s\": 5e11}' WHERE kind = 'segment'; VACUUM"
"$1" report -q -o page.html

# Errors are kept from the first script on; the last one writes what it finds into the document.
{
  echo '<script>window.errors = []; addEventListener("error", (e) => errors.push(e.message));</script>'
  cat page.html
  cat <<'END'
<script>
addEventListener('load', () => setTimeout(() => {
  const found = [...errors], all = (what) => [...document.querySelectorAll(what)];
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const level = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * level(r) + 0.7152 * level(g) + 0.0722 * level(b);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const expect = (what, got, wanted) => got === wanted || found.push(`${what}: ${got}, expected ${wanted}`);
  try {
    choosePlan(plans.value[ranked[0]]);
    expect('charts', charts.length, 4);
    expect('workloads', all('#workloads tbody tr').length, 2);
    expect('options in one line', all('#workloads .together').filter((one) => one.getClientRects().length > 1).length, 0);
    expect('options', all('#workloads .together').length > 4, true);
    expect('times', all('#workloads tbody td:last-child').map((one) => one.textContent).join(), 'unstable,not compared');
    expect('layers', at('subtitle').textContent.includes(', 12 layers of 12 heads, measured'), true);
    expect('link', all('#workloads a')[0].getAttribute('href'), '?workload=1');
    expect('doubt', at('doubt').textContent, 'No winner is certain: the time of plan 41115 is unstable: its threads waited 43 % of their time for a core.');
    const line = charts[3].spec.lines[0].points.map(([x]) => x);
    expect('the roofline goes right', String(line), String([...line].sort((a, b) => a - b)));
    expect('database', / --db [^ ]*\/db$/.test(at('origin-list').textContent), true);
    expect('pictures of masks', all('#mask-picture svg').length > 0, true);
    expect('command', at('chosen-command').textContent.startsWith(`fuseplan bench ${plans.value[ranked[0]]} -b 1`), true);
    expect('wider than the window', Math.max(document.documentElement.scrollWidth - innerWidth, 0), 0);
    expect('fetched', performance.getEntriesByType('resource').filter((one) => !one.name.startsWith('data:')).length, 0);
    charts[1].canvas.focus();
    charts[1].canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    expect('spoken', at('spoken').textContent.startsWith('Plan '), true);
  } catch (error) { found.push(error.message); }
  for (const e of all('body *')) {
    if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName) || !e.getClientRects().length) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < (parseFloat(getComputedStyle(e).fontSize) >= 24 ? 3 : 4.5))
      found.push(`faint: ${e.className} ${e.textContent.slice(0, 40)}`);
  }
  for (const e of all('svg')) e.querySelector('title') || found.push('an svg has no title');
  for (const e of all('[aria-labelledby]')) document.getElementById(e.getAttribute('aria-labelledby')) || found.push(e.id);
  for (const e of all('a[href^="#"]')) document.querySelector(e.getAttribute('href')) || found.push(e.href);
  for (const e of all('button')) e.textContent.trim() || found.push('a button has no name');
  document.title = `found ${found.length}: ${found.join('; ')}`;
}, 300));
</script>
END
} >tried.html
for width in 1180 500; do
  for colours in 1 2; do # dark, light
    "$chromium" --headless --no-sandbox --disable-gpu --window-size=$width,900 --virtual-time-budget=5000 \
      --blink-settings=preferredColorScheme=$((colours - 1)) --dump-dom "file://$dir/tried.html" >dom 2>said
    title=$(sed -n 's/.*<title>\(found [^<]*\)<.*/\1/p' dom)
    [ "$title" = 'found 0: ' ] || {
      echo "FAILED at width $width, colours $colours: ${title:-no title: $(tail -n 3 said)}" >&2
      exit 1
    }
  done
done
"$chromium" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom "file://$dir/page.html?workload=1" >dom 2>said
grep -qF '<h1 id="title">Batch 2, 64 tokens' dom || {
  echo "FAILED: the link to the other workload does not lead to it" >&2
  exit 1
}
