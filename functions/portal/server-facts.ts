// What somebody types or compares to set a device up: this server's real address, ports and CA.

import { apiPortOf, streamingPortOf } from '../../shared/domain/enrollment-links.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { needsPackage } from '../pages/enrollment/apps.ts';
import { attempt } from '../pages/form.ts';

export interface ServerFacts {
  /** What the server is called on a device. */
  name: string;
  /** Undefined while SERVER_ADDRESS is not set: then no device can be told where to go. */
  host: string | undefined;
  enrollment: number;
  streaming: number;
  api: number;
  /** SHA-256 of the CA certificate; undefined with the reason beside it while it cannot be read. */
  fingerprint: string | undefined;
  problem: string | undefined;
  /** A phone trusts the enrollment by itself, and the link has room for all that it needs. */
  linkIsEnough: boolean;
}

export async function serverFacts(deps: Deps): Promise<ServerFacts> {
  const { settings, place } = deps;
  const asked = await attempt(() => deps.coreAuthority.certificate());
  const enrollment = settings.CORE_ENROLLMENT_PORT;
  const streaming = streamingPortOf(settings.CORE_STREAMING_URL);
  return {
    name: place.name,
    host: settings.SERVER_ADDRESS,
    enrollment,
    streaming,
    api: apiPortOf(settings.CORE_API_URL),
    fingerprint: asked.done?.fingerprint,
    problem: asked.refused?.message,
    linkIsEnough: !needsPackage(deps),
  };
}
