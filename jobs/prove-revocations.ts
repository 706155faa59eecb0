// Advances revocations until they are proven: pending requests, the canary when due, then the
// proofs.

import { type CanaryOutcome, isCanaryWanted, runCanaryIfDue } from '../shared/devices/revocation/canary.ts';
import { proveOpenRevocations } from '../shared/devices/revocation/prove.ts';
import { carryOutOrders } from '../shared/devices/revocation/cancel-access.ts';
import { lateSinceMs } from '../shared/health/modules/unproven-revocations.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function isWanted(deps: Deps): Promise<boolean> {
  return (await deps.certificateStore.hasOpenWork()) || isCanaryWanted(deps);
}

export interface ProveSummary extends Record<string, unknown> {
  open_orders: number;
  canary: CanaryOutcome;
  revoked: number;
  revoking: number;
  revocation_failed: number;
}

const MAX_SCANNED = 200;

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<ProveSummary> {
  const openOrders = await carryOutOrders(deps, signal);
  const canary = signal.aborted ? 'not tried' : await runCanaryIfDue(deps);
  const proofs = await proveOpenRevocations(deps, signal);
  await measureWhatIsLate(deps);
  return { open_orders: openOrders, canary, ...proofs };
}

/**
 * Requests a measurement, because an overdue revocation is critical at once and health measures
 * hourly.
 */
async function measureWhatIsLate({ certificateStore, health, now }: Deps): Promise<void> {
  const open = [...(await certificateStore.orders()), ...(await certificateStore.openRevocations(MAX_SCANNED))];
  const since = lateSinceMs(open, now());
  if (since !== undefined) await health.forget('certificates', since);
}
