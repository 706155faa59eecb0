// Serves /Marti/api/security and /Marti/api/authentication: how the server proves itself, and where
// people are. Without any password: there are none here, or they are nobody's business.

import { messageOf } from '@holdfast/kit/app-error';
import { CoreFault, wrapped } from '../http/answers.ts';
import type { AdminRoute } from '../http/route.ts';

export interface SecurityOptions {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  /** The start of the names of groups in the directory, `core_`. */
  groupPrefix: string;
  security: {
    /** Names of the files in PEM: certificate and CA. */
    certificateFile: string;
    caFile: string;
    /** Of the certificates of devices. */
    validityDays: number;
    /** Throws a StackError that says what is wrong with certificate, key and CA. */
    verify: () => void;
  };
  /** The LDAP server, and where it looks people up. */
  directoryPlace: { url: string; base: string };
}

const TLS_VERSIONS = 'TLSv1.2,TLSv1.3';
/** The directory is asked at every sign-in, and otherwise after so many seconds. */
const UPDATE_SECONDS = 20;

export function securityRoutes({ nodeId, groupPrefix, security, directoryPlace }: SecurityOptions): AdminRoute[] {
  const { certificateFile, caFile, validityDays } = security;

  function readSecurity(): Response {
    const data = {
      keystoreFile: certificateFile,
      truststoreFile: caFile,
      keystorePass: '',
      truststorePass: '',
      tlsVersion: TLS_VERSIONS,
      x509Groups: true,
      x509addAnon: false,
      enableEnrollment: true,
      caType: 'TAKServer',
      signingKeystoreFile: caFile,
      signingKeystorePass: '',
      validityDays,
      mscaUserName: null,
      mscaPassword: null,
      mscaTruststore: null,
      mscaTruststorePass: null,
      mscaTemplateName: null,
    };
    return wrapped('com.bbn.marti.remote.SecurityConfigInfo', data, nodeId);
  }

  function readAuthentication(): Response {
    const data = {
      url: directoryPlace.url,
      userString: `cn={username},ou=users,${directoryPlace.base}`,
      updateInterval: UPDATE_SECONDS,
      groupPrefix,
      serviceAccountDN: '',
      serviceAccountCredential: '',
      groupBaseRDN: `ou=groups,${directoryPlace.base}`,
    };
    return wrapped('com.bbn.marti.remote.AuthenticationConfigInfo', data, nodeId);
  }

  function verifyFiles(): Response {
    try {
      security.verify();
    } catch (cause) {
      throw new CoreFault('invalid', `The certificates of the server can't be used: ${messageOf(cause)}`, { cause });
    }
    return wrapped('verifyConfig?', 'true', nodeId);
  }

  return [
    { path: '/Marti/api/security/config', handlers: { GET: readSecurity } },
    { path: '/Marti/api/security/verifyConfig', handlers: { GET: verifyFiles } },
    // Every port speaks TLS.
    { path: '/Marti/api/security/isSecure', handlers: { GET: () => wrapped('isSecure?', 'true', nodeId) } },
    { path: '/Marti/api/authentication/config', handlers: { GET: readAuthentication } },
  ];
}
