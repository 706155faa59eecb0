// What each app needs to enroll: a code to scan or a link, name and password to type, a package to open first.

import {
  type EnrollmentLinks,
  streamingPortOf,
  USUAL_ENROLLMENT_PORT,
  USUAL_STREAMING_PORT,
} from '../../../shared/domain/enrollment-links.ts';
import type { Deps } from '../../../shared/http/deps.ts';

export const APPS = ['atak', 'itak', 'takaware', 'wintak'] as const;
export type EnrollmentApp = (typeof APPS)[number];

export interface AppFacts {
  label: string;
  /** On which devices. */
  runsOn: string;
  /** Which link the code holds; undefined: the app scans none. */
  code: keyof EnrollmentLinks | undefined;
  /** Where in the app it is scanned. */
  scan: string;
  /** The phone itself opens the link. */
  opensLink: boolean;
  /** Name and password are typed. */
  types: boolean;
  /** The data package that it opens. */
  package: 'atak' | 'itak' | undefined;
}

export const FACTS: Readonly<Record<EnrollmentApp, AppFacts>> = {
  atak: {
    label: 'ATAK',
    runsOn: 'Android',
    code: 'atak',
    scan: 'Scan this code with the camera of the phone, and open the link in ATAK (5.1 or newer).',
    opensLink: true,
    types: false,
    package: 'atak',
  },
  itak: {
    label: 'iTAK',
    runsOn: 'iPhone, iPad',
    code: 'itak',
    scan: 'In iTAK: Settings, Network, Servers, +, Scan QR. Scan this code.',
    opensLink: false,
    types: true,
    package: 'itak',
  },
  takaware: {
    label: 'TAK Aware',
    runsOn: 'iPhone, iPad; TAK Tracker as well',
    code: 'takaware',
    scan: 'In TAK Aware or TAK Tracker: Settings, Servers, scan a QR code. Scan this one.',
    opensLink: false,
    types: false,
    package: undefined,
  },
  wintak: {
    label: 'WinTAK',
    runsOn: 'Windows',
    code: undefined,
    scan: '',
    opensLink: false,
    types: true,
    package: 'atak',
  },
};

/** The one that the address asks for; ATAK for everything else. */
export function appOf(text: string | undefined): EnrollmentApp {
  return APPS.find((app) => app === text) ?? 'atak';
}

/** The link has no room for a port, and phones know no CA of a stack: then the package comes first. */
export function needsPackage({ settings }: Pick<Deps, 'settings'>): boolean {
  return (
    settings.DEPLOY_MODE !== 'subdomain' ||
    settings.CORE_ENROLLMENT_PORT !== USUAL_ENROLLMENT_PORT ||
    streamingPortOf(settings.CORE_STREAMING_URL) !== USUAL_STREAMING_PORT
  );
}
