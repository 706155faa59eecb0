// What each app needs to enroll: a code to scan or a link, name and password to type, a package to open first.

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

/** Where devices are enrolled: for somebody by an administrator, or for oneself. The page is the same. */
export interface EnrollmentPlace {
  /** Of the routes: `/people/:id/enrollment`. Below it are `/withdraw` and `/progress`. */
  route: string;
  access: 'admin' | 'own';
  /** The key of the navigation entry that it belongs to. */
  current: string;
  /** Whose devices these are; throws `not_found` for nobody. */
  ownerOf: (c: PageContext) => Promise<Account>;
  /** The path of the page for this person. */
  pathOf: (account: Account) => string;
  titleOf: (account: Account) => string;
  /** The way back. */
  backOf: (account: Account) => { path: string; label: string };
}

/** What the parts of the page know of who it is for. */
export interface Enrollee {
  account: Account;
  path: string;
  access: EnrollmentPlace['access'];
}
