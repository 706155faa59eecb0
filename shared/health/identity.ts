// Whether people can be let in: the provider accepts our API token, and in both bases of the directory a real bind and a
// search find a group that must be there. A directory that answers but is empty is as bad as none.

import type { Finding } from '../domain/evaluate.ts';
import { ADMIN_ROLE_GROUP } from '../domain/names.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Directory, DirectoryBase } from '../ports/directory.ts';
import { healthModule } from './module.ts';

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
}

export const identity = healthModule<IdentityData>({
  name: 'identity',

  remedy: [
    'See whether the provider and its directory run (docker compose ps, or pids in DIR/stack.json) and read their logs; a directory that came up before its provider can be empty until it is restarted (docker compose restart NAME).',
    'If our token is refused, make a new API token of an administrator at the provider, set IDENTITY_TOKEN in .env and restart.',
    'If adm_ldapservice is refused, set LDAP_BIND_PASSWORD to its password, or restart: a start sets the password to LDAP_BIND_PASSWORD.',
    'Ask the directory yourself: ldapsearch -x -H LDAP_URL -D cn=adm_ldapservice,ou=users,LDAP_BASE_DN -W -b ou=groups,LDAP_BASE_DN "(cn=core_ROLE_ADMIN)" member',
  ],

  async read({ identity: provider, directory, now }) {
    const account = provider.me().then(
      ({ username, isSuperuser }) => ({
        account: username,
        api_error: isSuperuser ? null : `the API token belongs to ${username}, who may not manage accounts`,
      }),
      (error: unknown) => ({ account: null, api_error: withoutStop(messageOf(error)) }),
    );
    const version = provider.version().catch(() => null);
    const bases = (['core', 'web'] as const).map((base) => probed(directory, base, now));
    return { ...(await account), provider_version: await version, bases: await Promise.all(bases) };
  },

  findings({ api_error: apiError, bases }) {
    const failure = (says: string): Finding => ({ kind: 'failure', says });
    // The provider first: when it cannot be asked, that is why the directory lacks our accounts, seldom the other way round.
    const errors = [apiError, ...bases.map(({ error }) => error)].filter((error) => error !== null);
    // A directory that does not answer does so in both bases: one cause.
    return [...new Set(errors)].map(failure);
  },

  well: ({ provider_version: version, bases }) =>
    `The provider${version === null ? '' : ` (${version})`} accepts our token; the directory lets people in (${Math.max(...bases.map(({ milliseconds }) => milliseconds))} ms).`,

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

/** The evaluator ends the sentence. */
function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
