// What the navigation of each face shows, in order: one line per page that stands in it.

import type { Access } from '../../shared/domain/principal.ts';
import type { Face } from '../../shared/http/env.ts';

export interface NavigationEntry {
  /** What a page names as its own place. */
  key: string;
  path: string;
  label: string;
  faces: readonly Face[];
  access: Exclude<Access, 'open'>;
  /** In the bar of a phone too; everything else stands behind More there. */
  inBar?: readonly Face[];
  /** Under this heading, where there is one. */
  section?: string;
}

const CONSOLE = ['console'] as const;
const PORTAL = ['portal'] as const;
const BOTH = ['console', 'portal'] as const;

export const NAVIGATION: readonly NavigationEntry[] = [
  { key: 'overview', path: '/', label: 'Overview', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'home', path: '/', label: 'My devices', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'add-device', path: '/add-device', label: 'Add a device', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'guides', path: '/guides', label: 'Guides', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'people', path: '/people', label: 'People', faces: BOTH, access: 'viewer', inBar: BOTH },
  { key: 'groups', path: '/groups', label: 'Groups', faces: BOTH, access: 'viewer' },
  { key: 'devices', path: '/devices', label: 'Devices', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'certificates', path: '/certificates', label: 'Certificates', faces: CONSOLE, access: 'viewer' },
  { key: 'database', path: '/database', label: 'Database', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'alerts', path: '/alerts', label: 'Alerts', faces: CONSOLE, access: 'viewer' },
  {
    key: 'service-accounts',
    path: '/service-accounts',
    label: 'Service accounts',
    faces: CONSOLE,
    access: 'viewer',
    section: 'Server',
  },
  { key: 'plugins', path: '/plugins', label: 'Plugins', faces: CONSOLE, access: 'viewer', section: 'Server' },
  { key: 'tokens', path: '/tokens', label: 'API tokens', faces: CONSOLE, access: 'admin', section: 'Server' },
  { key: 'settings', path: '/settings', label: 'Settings', faces: CONSOLE, access: 'admin', section: 'Server' },
  { key: 'jobs', path: '/jobs', label: 'Jobs', faces: CONSOLE, access: 'viewer', section: 'Record' },
  { key: 'logs', path: '/logs', label: 'Logs', faces: CONSOLE, access: 'admin', section: 'Record' },
  { key: 'audit', path: '/audit', label: 'Audit', faces: CONSOLE, access: 'admin', section: 'Record' },
  { key: 'lockouts', path: '/lockouts', label: 'Lock-outs', faces: CONSOLE, access: 'admin', section: 'Record' },
  { key: 'account', path: '/account', label: 'My account', faces: BOTH, access: 'own', section: 'Me', inBar: PORTAL },
];
