// Defines what each app needs to enroll: a code or link, username and password, or a data package.

import {
  type EnrollmentLinks,
  streamingPortOf,
  USUAL_ENROLLMENT_PORT,
  USUAL_STREAMING_PORT,
} from '../../../shared/devices/links.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import type { Account } from '../../../shared/identity/port.ts';
import type { PageContext } from '../page-routes.ts';

export const APPS = ['atak', 'itak', 'takaware', 'wintak'] as const;
export type EnrollmentApp = (typeof APPS)[number];

export interface AppFacts {
  label: string;
  /** The devices that run it. */
  runsOn: string;
  /** The link in the code. Undefined when the app scans no code. */
  code: keyof EnrollmentLinks | undefined;
  /** How to scan it. */
  scan: string;
  /** The device can open the link without scanning. */
  opensLink: boolean;
  /** Username and password are typed. */
  types: boolean;
  /** The data package that it opens. */
  package: 'atak' | 'itak' | undefined;
}

export const FACTS: Readonly<Record<EnrollmentApp, AppFacts>> = {
  atak: {
    label: 'ATAK',
    runsOn: 'Android',
    code: 'atak',
    scan: "Scan this code with the device's camera, then open the link in ATAK (5.1 or newer).",
    opensLink: true,
    types: false,
    package: 'atak',
  },
  itak: {
    label: 'iTAK',
    runsOn: 'iPhone, iPad',
    code: 'itak',
    scan: 'In iTAK, tap Settings, Network, Servers, + and Scan QR. Then scan this code.',
    opensLink: false,
    types: true,
    package: 'itak',
  },
  takaware: {
    label: 'TAK Aware',
    runsOn: 'iPhone, iPad, also for TAK Tracker',
    code: 'takaware',
    scan: 'In TAK Aware or TAK Tracker, tap Settings and Servers, and choose to scan a QR code. Then scan this code.',
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

/** The app in the address. Default: ATAK. */
export function appOf(text: string | undefined): EnrollmentApp {
  return APPS.find((app) => app === text) ?? 'atak';
}

/**
 * True when devices must open the data package first: the link can't hold a port, and devices don't
 * trust a private CA.
 */
export function needsPackage({ settings }: Pick<Deps, 'settings'>): boolean {
  return (
    settings.DEPLOY_MODE !== 'subdomain' ||
    settings.CORE_ENROLLMENT_PORT !== USUAL_ENROLLMENT_PORT ||
    streamingPortOf(settings.CORE_STREAMING_URL) !== USUAL_STREAMING_PORT
  );
}

/**
 * One of the two places of the enrollment page: an administrator's page for a person, or the
 * person's own page.
 */
export interface EnrollmentPlace {
  /** The route: `/people/:id/enrollment`. Its subpaths are `/withdraw` and `/progress`. */
  route: string;
  access: 'admin' | 'own';
  /** The key of its navigation entry. */
  current: string;
  /** The owner of the devices. Throws `not_found`. */
  ownerOf: (c: PageContext) => Promise<Account>;
  /** The path of the page for this person. */
  pathOf: (account: Account) => string;
  titleOf: (account: Account) => string;
  /** The link at the end of the page. */
  backOf: (account: Account) => { path: string; label: string };
}

/** The person who enrolls. */
export interface Enrollee {
  account: Account;
  path: string;
  access: EnrollmentPlace['access'];
}
