// Whose a certificate or a connection is, as a link to where one sees to it: people are found by name, programs have a page of
// their own.

import { SERVICE_PREFIX } from '../../../shared/domain/service-accounts.ts';

export function OwnerLink({ username }: { username: string }) {
  const query = new URLSearchParams({ search: username }).toString();
  const isProgram = username.toLowerCase().startsWith(SERVICE_PREFIX);
  return <a href={isProgram ? '/service-accounts' : `/people?${query}`}>{username}</a>;
}
