// The CoT event of the probe: of a type that no device shows, for the probe's own channel alone. It is stored like any other, so
// that it can be found again.

const STALE_MS = 30_000;

/** `channel` as devices see it. All of it is our own text: nothing needs escaping. */
export function probeEvent(uid: string, channel: string, now: Date): string {
  const time = now.toISOString();
  const stale = new Date(now.getTime() + STALE_MS).toISOString();
  return (
    `<event version="2.0" uid="${uid}" type="t-x-holdfast-probe" how="m-g" time="${time}" start="${time}" stale="${stale}">` +
    '<point lat="0" lon="0" hae="0" ce="9999999" le="9999999"/>' +
    `<detail><marti><dest group="${channel}"/></marti></detail></event>`
  );
}
