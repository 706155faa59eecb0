// Whether people can be let in: the provider accepts our API token, and in both bases of the directory a real bind and a
// search find a group that must be there. A directory that answers but is empty is as bad as none.

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
  /** Connected while the directory did not answer, and disconnected within the last hour for it. */
  disconnected: Unlisted[];
  disconnected_at: string | null;
  /** Still connected without a name. */
  unlisted: Unlisted[];
}

interface Unlisted {
  callsign: string;
  uid: string;
}

export const identity = healthModule<IdentityData>({
  name: 'identity',

  remedy: [
    'See whether the provider and its directory run (docker compose ps, or pids in DIR/stack.json) and read their logs; a directory that came up before its provider can be empty until it is restarted (docker compose restart NAME).',
    'If our token is refused, make a new API token of an administrator at the provider, set IDENTITY_TOKEN in .env and restart.',
    'If adm_ldapservice is refused, set LDAP_BIND_PASSWORD to its password, or restart: a start sets the password to LDAP_BIND_PASSWORD.',
    'Ask the directory yourself: ldapsearch -x -H LDAP_URL -D cn=adm_ldapservice,ou=users,LDAP_BASE_DN -W -b ou=groups,LDAP_BASE_DN "(cn=core_ROLE_ADMIN)" member',
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
    // Rule `unlistedIsExtra`: our own database has a module for itself.
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
    // The provider first: when it cannot be asked, that is why the directory lacks our accounts, seldom the other way round.
    const errors = [apiError, ...bases.map(({ error }) => error)].filter((error) => error !== null);
    // A directory that does not answer does so in both bases: one cause.
    return [...[...new Set(errors)].map(failure), ...(unlisted.length > 0 ? [withoutName(unlisted)] : [])];
  },

  well: ({ provider_version: version, bases, disconnected, disconnected_at: at }) =>
    `The provider${version === null ? '' : ` (${version})`} accepts our token; the directory lets people in (${Math.max(...bases.map(({ milliseconds }) => milliseconds))} ms).${
      at === null
        ? ''
        : ` ${devices(disconnected.length)} connected while the directory was away and got no channels; disconnected at ${at.slice(11, 16)} UTC to connect anew.`
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
        return `the directory answers, but its ${base} base has no group ${ADMIN_ROLE_GROUP}: nobody would have any rights`;
      return members > 0
        ? null
        : `the group ${ADMIN_ROLE_GROUP} in the ${base} base has no members: nobody could administer`;
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
    says: `${devices(unlisted.length)} connected without a name, and again after a disconnect, so without any channel: ${callsigns.join(', ')}${others > 0 ? ` and ${others} more` : ''}`,
    remedy:
      'The certificate of such a device names an account that the directory does not show: deleted at the provider, or in no group. Enroll the device under an account that is there, or revoke its certificate.',
  };
}

const devices = (count: number): string => (count === 1 ? '1 device' : `${count} devices`);

const named = ({ callsign, uid }: Unlisted): Unlisted => ({ callsign: callsign.slice(0, 100), uid: uid.slice(0, 100) });

/** The evaluator ends the sentence. */
function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
