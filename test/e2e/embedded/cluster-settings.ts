// What the settings of a core node of several change: what its container hands over to it.

import { expect } from 'vitest';
import { takeCoreHandover } from '@holdfast/core/handover';
import { planContainer } from '../../../packages/setup/containers/plan.ts';

const NODE = {
  HOLDFAST_STACK: 'light',
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'subdomain',
  CORE_DB_PASSWORD: 'core-password',
  LDAP_BIND_PASSWORD: 'bind-password',
  CORE_NODE: '3',
  NATS_URL: 'tls://nats.example.org:4333',
  NATS_PASSWORD: 'a-nats-password-of-this-test',
  NATS_CA_FILE: '/etc/nats-ca/other.pem',
};

function clusterOf(): unknown {
  const plan = planContainer('/', 'core', NODE);
  if (Array.isArray(plan) || plan.role === 'database') throw new Error(JSON.stringify(plan));
  return takeCoreHandover({ ...plan.environment }).cluster;
}

const behaves = (part: object) => async (): Promise<void> => expect(clusterOf()).toMatchObject(part);

export const CLUSTER_BEHAVIOURS = {
  CORE_NODE: behaves({ node: 'core-3', index: 2 }),
  NATS_URL: behaves({ nats: { url: NODE.NATS_URL } }),
  NATS_PASSWORD: behaves({ nats: { password: NODE.NATS_PASSWORD } }),
  NATS_CA_FILE: behaves({ nats: { caFile: NODE.NATS_CA_FILE } }),
};
