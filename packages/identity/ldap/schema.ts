// Defines attributes and classes, for the subschema, comparisons and attributes named by number.

export type Syntax = 'text' | 'name' | 'integer' | 'time' | 'boolean' | 'class';

interface AttributeType {
  name: string;
  oid: string;
  syntax: Syntax;
  operational?: true;
}

const TYPES: readonly AttributeType[] = [
  { name: 'objectClass', oid: '2.5.4.0', syntax: 'class' },
  { name: 'cn', oid: '2.5.4.3', syntax: 'text' },
  { name: 'sn', oid: '2.5.4.4', syntax: 'text' },
  { name: 'ou', oid: '2.5.4.11', syntax: 'text' },
  { name: 'o', oid: '2.5.4.10', syntax: 'text' },
  { name: 'dc', oid: '0.9.2342.19200300.100.1.25', syntax: 'text' },
  { name: 'description', oid: '2.5.4.13', syntax: 'text' },
  { name: 'member', oid: '2.5.4.31', syntax: 'name' },
  { name: 'uniqueMember', oid: '2.5.4.50', syntax: 'name' },
  { name: 'name', oid: '2.5.4.41', syntax: 'text' },
  { name: 'givenName', oid: '2.5.4.42', syntax: 'text' },
  { name: 'distinguishedName', oid: '2.5.4.49', syntax: 'name' },
  { name: 'displayName', oid: '2.16.840.1.113730.3.1.241', syntax: 'text' },
  { name: 'uid', oid: '0.9.2342.19200300.100.1.1', syntax: 'text' },
  { name: 'mail', oid: '0.9.2342.19200300.100.1.3', syntax: 'text' },
  { name: 'sAMAccountName', oid: '1.2.840.113556.1.4.221', syntax: 'text' },
  { name: 'memberOf', oid: '1.2.840.113556.1.2.102', syntax: 'name' },
  { name: 'uidNumber', oid: '1.3.6.1.1.1.1.0', syntax: 'integer' },
  { name: 'gidNumber', oid: '1.3.6.1.1.1.1.1', syntax: 'integer' },
  { name: 'homeDirectory', oid: '1.3.6.1.1.1.1.3', syntax: 'text' },
  { name: 'ntUserWorkstations', oid: '2.16.840.1.113730.3.1.545', syntax: 'text' },
  { name: 'pwdChangedTime', oid: '1.3.6.1.4.1.42.2.27.8.1.16', syntax: 'time' },
  { name: 'createTimestamp', oid: '2.5.18.1', syntax: 'time' },
  { name: 'modifyTimestamp', oid: '2.5.18.2', syntax: 'time' },
  { name: 'entryDN', oid: '1.3.6.1.1.20', syntax: 'name', operational: true },
  { name: 'subschemaSubentry', oid: '2.5.18.10', syntax: 'name', operational: true },
  { name: 'hasSubordinates', oid: '2.5.18.9', syntax: 'boolean', operational: true },
  { name: 'ak-active', oid: 'ak-active-oid', syntax: 'boolean' },
  { name: 'ak-superuser', oid: 'ak-superuser-oid', syntax: 'boolean' },
];

const BY_NAME = new Map(
  TYPES.flatMap((type): [string, AttributeType][] => [
    [type.name.toLowerCase(), type],
    [type.oid, type],
  ]),
);

/**
 * The name by which entries hold an attribute, in lower case, whether it was named by name or by
 * number.
 */
export function attributeKey(description: string): string {
  const lower = description.toLowerCase();
  return BY_NAME.get(lower)?.name.toLowerCase() ?? lower;
}

/** Undefined for an attribute that only custom data can bring. */
export function syntaxOf(key: string): Syntax | undefined {
  return BY_NAME.get(key)?.syntax;
}

export function isOperational(key: string): boolean {
  return BY_NAME.get(key)?.operational === true;
}

export const CLASSES = {
  user: ['top', 'person', 'organizationalPerson', 'inetOrgPerson', 'user', 'posixAccount', 'goauthentik.io/ldap/user'],
  group: ['top', 'group', 'groupOfUniqueNames', 'groupOfNames', 'posixGroup', 'goauthentik.io/ldap/group'],
  virtualGroup: [
    'top',
    'group',
    'groupOfUniqueNames',
    'groupOfNames',
    'posixGroup',
    'goauthentik.io/ldap/group',
    'goauthentik.io/ldap/virtual-group',
  ],
} as const;

const SYNTAX_TEXT: Record<Syntax, string> = {
  text: 'EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15',
  name: 'EQUALITY distinguishedNameMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.12',
  integer: 'EQUALITY integerMatch ORDERING integerOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27',
  time: 'EQUALITY generalizedTimeMatch ORDERING generalizedTimeOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.24',
  boolean: 'EQUALITY booleanMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.7',
  class: 'EQUALITY objectIdentifierMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.38',
};

export const ATTRIBUTE_TYPES: readonly string[] = TYPES.map(
  ({ name, oid, syntax, operational }) =>
    `( ${oid} NAME '${name}' ${SYNTAX_TEXT[syntax]}${operational ? ' NO-USER-MODIFICATION USAGE directoryOperation' : ''} )`,
);

export const OBJECT_CLASSES: readonly string[] = [
  "( 2.5.6.0 NAME 'top' ABSTRACT MUST objectClass )",
  "( 2.5.6.5 NAME 'organizationalUnit' SUP top STRUCTURAL MUST ou MAY description )",
  "( 0.9.2342.19200300.100.4.13 NAME 'domain' SUP top STRUCTURAL MUST dc MAY description )",
  "( 2.5.6.4 NAME 'organization' SUP top STRUCTURAL MUST o MAY description )",
  "( 2.5.6.6 NAME 'person' SUP top STRUCTURAL MUST cn MAY ( sn $ description ) )",
  "( 2.5.6.7 NAME 'organizationalPerson' SUP person STRUCTURAL )",
  "( 2.16.840.1.113730.3.2.2 NAME 'inetOrgPerson' SUP organizationalPerson STRUCTURAL MAY ( displayName $ mail $ uid $ givenName ) )",
  "( 1.2.840.113556.1.5.9 NAME 'user' SUP organizationalPerson STRUCTURAL MAY ( sAMAccountName $ memberOf $ name $ distinguishedName $ ak-active $ ak-superuser $ pwdChangedTime ) )",
  "( 1.3.6.1.1.1.2.0 NAME 'posixAccount' SUP top AUXILIARY MUST ( cn $ uid $ uidNumber $ gidNumber $ homeDirectory ) )",
  "( 1.2.840.113556.1.5.8 NAME 'group' SUP top STRUCTURAL MAY ( cn $ sAMAccountName $ member $ distinguishedName $ ak-superuser $ uid ) )",
  "( 2.5.6.17 NAME 'groupOfUniqueNames' SUP top STRUCTURAL MUST cn MAY ( uniqueMember $ description ) )",
  "( 2.5.6.9 NAME 'groupOfNames' SUP top STRUCTURAL MUST cn MAY ( member $ description ) )",
  "( 1.3.6.1.1.1.2.2 NAME 'posixGroup' SUP top AUXILIARY MUST ( cn $ gidNumber ) )",
];
