// Renders the chart with helm, and reads the schemas of Kubernetes and of the resources of others.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv, type ErrorObject } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';

export const CHART = resolve(import.meta.dirname, '../../compose/kubernetes');
const SCHEMAS = '/usr/local/share/kubernetes-schemas';
export const noHelm = spawnSync('helm', ['version']).error !== undefined;
export const noSchemas = noHelm || !existsSync(SCHEMAS);

export const CASES = readdirSync(join(CHART, 'ci')).map((file) => file.replace('-values.yaml', ''));
export const valuesOf = (name: string): string => join(CHART, 'ci', `${name}-values.yaml`);

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec?: Record<string, unknown>;
  data?: Record<string, string>;
}

export function helm(...args: string[]): { status: number | null; output: string; errors: string } {
  const { status, stdout, stderr } = spawnSync('helm', args, { encoding: 'utf8', cwd: CHART });
  return { status, output: stdout, errors: stderr };
}

/** The arguments of helm for values by their paths. */
export function changesOf(values: Record<string, unknown>): string[] {
  return Object.entries(values).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]);
}

const rendered = new Map<string, KubernetesObject[]>();

/** The objects of a file of ci/, with other values in place of some of its own. */
export function render(name: string, changes: Record<string, unknown> = {}): KubernetesObject[] {
  const key = JSON.stringify([name, changes]);
  const known = rendered.get(key);
  if (known !== undefined) return known;
  const given = ['-f', valuesOf(name), ...changesOf(changes)];
  const { status, output, errors } = helm('template', 'holdfast', '.', '-n', 'tak', ...given);
  if (status !== 0) throw new Error(errors);
  const objects = parseAllDocuments(output)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
  rendered.set(key, objects);
  return objects;
}

export interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: Record<string, unknown> }[];
  envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  securityContext?: Record<string, unknown>;
  resources?: Record<'requests' | 'limits', Record<string, string>>;
  restartPolicy?: string;
  ports?: { name: string; containerPort: number }[];
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
  startupProbe?: unknown;
  readinessProbe?: unknown;
  livenessProbe?: unknown;
}

export interface Pod {
  securityContext?: Record<string, unknown>;
  containers: Container[];
  initContainers?: Container[];
  volumes?: Record<string, unknown>[];
  [member: string]: unknown;
}

/** The pods that the objects make, by the name of their object. */
export function podsOf(objects: readonly KubernetesObject[]): [string, Pod][] {
  return objects.flatMap(({ kind, metadata, spec }): [string, Pod][] => {
    if (kind === 'Pod') return [[metadata.name, spec as unknown as Pod]];
    const { template } = (spec ?? {}) as { template?: { spec: Pod } };
    return template === undefined ? [] : [[metadata.name, template.spec]];
  });
}

export const containersOf = ({ initContainers = [], containers }: Pod): Container[] => [
  ...initContainers,
  ...containers,
];

interface Validator {
  (object: unknown): unknown;
  errors?: ErrorObject[] | null;
}

type Schema = Record<string, unknown>;

const validators = new Map<string, Validator>();
let core: Ajv | undefined;

/** What is wrong with an object; an unknown member is, too. */
export function problemsOf(object: KubernetesObject): string[] {
  const { apiVersion, kind } = object;
  const key = `${apiVersion}/${kind}`;
  const validate = validators.get(key) ?? validatorOf(apiVersion, kind);
  validators.set(key, validate);
  if (validate(object)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${key} ${object.metadata.name}${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

function validatorOf(apiVersion: string, kind: string): Validator {
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const custom = customSchema(group, version, kind);
  if (custom !== undefined) return newAjv().compile(custom);
  core ??= newAjv().addSchema(kubernetesSchema(), 'kubernetes');
  const of = group === '' ? 'core' : group.replace('.k8s.io', '');
  const validate = core.getSchema(`kubernetes#/definitions/io.k8s.api.${of}.${version}.${kind}`);
  if (validate === undefined) throw new Error(`There is no schema for ${apiVersion} ${kind}.`);
  return validate as Validator;
}

function newAjv(): Ajv {
  return new Ajv({ strict: false, validateFormats: false, allErrors: true, code: { regExp } });
}

/** Go's patterns may begin with a flag. */
const regExp = Object.assign(
  (pattern: string, flags: string) =>
    pattern.includes('(?i)') ? new RegExp(pattern.replace('(?i)', ''), `${flags}i`) : new RegExp(pattern, flags),
  { code: 'new RegExp' },
);

function folderOf(module: string): string {
  const name = readdirSync(SCHEMAS).find((folder) => folder.startsWith(`${module}@`));
  if (name === undefined) throw new Error(`The schemas of ${module} are not installed. Run ./scripts/test.sh.`);
  return join(SCHEMAS, name);
}

function kubernetesSchema(): Schema {
  const file = join(folderOf('k8s.io_kubernetes'), 'swagger.json');
  const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as { definitions: Record<string, Schema> };
  definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString'] = { type: ['integer', 'string'] };
  definitions['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { type: ['number', 'string'] };
  return { definitions: closed(definitions) };
}

const MODULES: Record<string, string> = {
  'gateway.networking.k8s.io': 'sigs.k8s.io_gateway-api',
  'cert-manager.io': 'github.com_cert-manager_cert-manager',
  'postgresql.cnpg.io': 'github.com_cloudnative-pg_cloudnative-pg',
  'barmancloud.cnpg.io': 'github.com_cloudnative-pg_plugin-barman-cloud',
  'monitoring.coreos.com': 'github.com_prometheus-operator_prometheus-operator',
};

interface CustomResource {
  spec: { versions: { name: string; served: boolean; schema: { openAPIV3Schema: Schema } }[] };
}

function customSchema(group: string, version: string, kind: string): Schema | undefined {
  const module = MODULES[group];
  if (module === undefined) return undefined;
  const folder = folderOf(module);
  const file = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith(`${group}_${kind.toLowerCase()}s.yaml`),
  );
  if (file === undefined) throw new Error(`${module} has no ${kind}.`);
  const { spec } = parse(readFileSync(join(folder, file), 'utf8')) as CustomResource;
  const found = spec.versions.find(({ name, served }) => name === version && served);
  if (found === undefined) throw new Error(`${module} serves no ${kind} of version ${version}.`);
  const schema = closed(found.schema.openAPIV3Schema) as { properties: Record<string, Schema> };
  schema.properties['metadata'] = { type: 'object' };
  return schema;
}

/** The schema without members that it doesn't name, as the API server prunes or refuses them. */
function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T;
  if (typeof schema !== 'object' || schema === null) return schema;
  const of = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value as unknown)]));
  if (of['x-kubernetes-int-or-string'] === true) return { type: ['integer', 'string'] } as T;
  const isOpen = of['additionalProperties'] !== undefined || of['x-kubernetes-preserve-unknown-fields'] === true;
  const hasMembers = of['type'] === 'object' || of['$ref'] === undefined;
  if (isObject(of['properties']) && !isOpen && hasMembers) of['additionalProperties'] = false;
  return of as T;
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null;
}
