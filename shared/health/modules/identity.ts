// Checks that people can sign in: the provider accepts our API token, and in both bases of the
// directory a real bind and a search find a group that must be there. A directory that answers but
// is empty is as bad as none.

import { messageOf } from '@holdfast/kit/app-error';
import type { Directory, DirectoryBase } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP } from '@holdfast/kit/names';
import { unlistedState } from '../../devices/connections/unlisted.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';

interface BaseState {
  base: DirectoryBase;
  error: string | null;
  milliseconds: number;
}

interface IdentityData {
  /** The account that our API token belongs to. */
  account: string | null;
  provider_version: string | null;
  api_error: string | null;
  bases: BaseState[];
  /**
   * Devices that connected while the directory was unavailable, and were disconnected for it in the
   * last hour.
   */
  disconnected: Unlisted[];
  disconnected_at: string | null;
  /** Devices still connected without a name. */
  unlisted: Unlisted[];
}

interface Unlisted {
  callsign: string;
  uid: string;
}

export const identity = healthModule<IdentityData>({
  name: 'identity',

  remedy: [
    'Check that the provider and its directory are running (docker compose ps, or pids in DIR/stack.json) and read their logs. A directory that started before its provider can be empty until it is restarted (docker compose restart NAME).',
    'If our token is rejected, create a new API token of an administrator at the provider, set IDENTITY_TOKEN in .env and restart.',
    'If adm_ldapservice is rejected, set LDAP_BIND_PASSWORD to its password, or restart: a start sets the password to LDAP_BIND_PASSWORD.',
    'Query the directory yourself: ldapsearch -x -H LDAP_URL -D cn=adm_ldapservice,ou=users,LDAP_BASE_DN -W -b ou=groups,LDAP_BASE_DN "(cn=core_ROLE_ADMIN)" member',
  ],

  async read({ identity: provider, directory, jobRuns, now }) {
    const account = provider.me().then(
      ({ username, isSuperuser }) => ({
        account: username,
        api_error: isSuperuser ? null : `the API token belongs to ${username}, who may not manage accounts`,
      }),
      (error: unknown) => ({ account: null, api_error: withoutStop(messageOf(error)) }),
    );
    const version = provider.version().catch(() => null);
    // Rule `unlistedIsExtra`: our own database has its own module.
    const unlisted = unlistedState({ jobRuns, now }).catch(() => ({ disconnected: [], left: [], at: undefined }));
    const bases = (['core', 'web'] as const).map((base) => probed(directory, base, now));
    const { disconnected, left, at } = await unlisted;
    return {
      ...(await account),
      provider_version: await version,
      bases: await Promise.all(bases),
      disconnected: disconnected.map(named),
      disconnected_at: at?.toISOString() ?? null,
      unlisted: left.map(named),
    };
  },

  findings({ api_error: apiError, bases, unlisted }) {
    const failure = (says: string): Finding => ({ kind: 'failure', says });
    // The provider first: when it is unavailable, the directory lacks our accounts because of it.
    const errors = [apiError, ...bases.map(({ error }) => error)].filter((error) => error !== null);
    // An unavailable directory fails in both bases for one cause.
    return [...[...new Set(errors)].map(failure), ...(unlisted.length > 0 ? [withoutName(unlisted)] : [])];
  },

  well: ({ provider_version: version, bases, disconnected, disconnected_at: at }) =>
    `The provider${version === null ? '' : ` (${version})`} accepts our token. Directory sign-in works (${Math.max(...bases.map(({ milliseconds }) => milliseconds))} ms).${
      at === null
        ? ''
        : ` ${devices(disconnected.length)} connected without channels while the directory was unavailable. Disconnected at ${at.slice(11, 16)} UTC to reconnect.`
    }`,

  trend: {
    name: 'slowest sign-in',
    unit: 'milliseconds',
    figureOf: ({ bases }) =>
      bases.some(({ error }) => error !== null) ? null : Math.max(...bases.map(({ milliseconds }) => milliseconds)),
  },
});

async function probed(directory: Directory, base: DirectoryBase, now: () => Date): Promise<BaseState> {
  const begunMs = now().getTime();
  const error = await directory.probe(base, ADMIN_ROLE_GROUP).then(
    (members) => {
      if (members === undefined)
        return `the directory answers, but its ${base} base has no group ${ADMIN_ROLE_GROUP}, so no one has any rights`;
      return members > 0
        ? null
        : `the group ${ADMIN_ROLE_GROUP} in the ${base} base has no members, so there is no administrator`;
    },
    (thrown: unknown) => withoutStop(messageOf(thrown)),
  );
  return { base, error, milliseconds: now().getTime() - begunMs };
}

function withoutName(unlisted: readonly Unlisted[]): Finding {
  const callsigns = unlisted.slice(0, 3).map(({ callsign, uid }) => JSON.stringify(callsign || uid));
  const others = unlisted.length - callsigns.length;
  return {
    kind: 'fact',
    status: 'warning',
    says: `${devices(unlisted.length)} connected without a name, even after a disconnect, so they have no channel: ${callsigns.join(', ')}${others > 0 ? ` and ${others} more` : ''}`,
    remedy:
      'The device has a certificate of an account that the directory does not list: deleted at the provider, or in no group. Enroll the device under an existing account, or revoke its certificate.',
  };
}

const devices = (count: number): string => (count === 1 ? '1 device' : `${count} devices`);

const named = ({ callsign, uid }: Unlisted): Unlisted => ({ callsign: callsign.slice(0, 100), uid: uid.slice(0, 100) });

/** Removes the final period, which the evaluator adds. */
function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
