/**
 * The configuration section `[oidc]`: an OpenID provider with whose accounts operators sign in, and the roles its groups give.
 *
 * The section is in use once `issuer` is set; `oidcFindings` then checks what its keys require of each other.
 */
import { X509Certificate } from 'node:crypto'
import { fault, readable, warning, type Finding } from '../../../config/findings.js'
import type { Config, Named } from '../../../config/config.js'
import {
  choice,
  flag,
  list,
  optionalParsed,
  parsed,
  table,
  text,
  type FieldNotes,
} from '../../../config/schema/fields.js'
import { describeError } from '../../../core/errors.js'
import { ROLES } from '../../../http/roles.js'
import { addressKind } from '../../../world/net/address-kind.js'
import { findTargetFault, hostOf, isLocalhost } from '../../../world/net/egress-policy.js'

/**
 * An https URL, as the provider writes it: a trailing slash after a path is part of it. Plain http is accepted for loopback and private
 * addresses, for development: elsewhere tokens could be intercepted.
 *
 * @returns in the form of the URL standard, so that issuers can be compared
 */
export function parseIssuer(issuer: string): string | undefined {
  if (findTargetFault(issuer) !== undefined) return undefined
  const { protocol, hostname, search, hash, href } = new URL(issuer)
  if (search !== '' || hash !== '') return undefined
  const host = hostOf(hostname)
  const isNear = isLocalhost(host) || ['loopback', 'private'].includes(addressKind(host))
  return protocol === 'https:' || isNear ? href : undefined
}

const SCOPE = parsed(
  scope => (/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(scope) ? scope : undefined),
  'a scope without spaces',
  { description: '' },
)

const nonEmpty = (expected: string, notes: FieldNotes) =>
  parsed(value => (value !== '' && !/\p{Cc}/u.test(value) ? value : undefined), expected, notes)

const role = table({
  group: nonEmpty('the name of a group', {
    description: 'Value of `groups_claim`, compared exactly.',
    example: 'mail-admins',
  }),
  role: choice(ROLES, { description: 'Role of its members.', example: 'owner' }),
  workspace: text({
    default: '',
    description: 'Id or name of the workspace in which they have it; empty: all workspaces.',
  }),
})

export const OIDC_SECTION = table(
  {
    issuer: optionalParsed(
      parseIssuer,
      'an https URL without query (http only for loopback and private addresses)',
      {
        default: '',
        example: 'https://id.example.com/realms/staff',
        description:
          'Issuer of the provider, as its discovery document (`/.well-known/openid-configuration` below it) writes it, trailing slash included. ' +
          'It may be at a private address; the other endpoints must be at the same host and port or on the public Internet. Empty: no sign-in with OpenID Connect.',
      },
    ),
    client_id: text({ default: '', example: 'postroad', description: 'Client id at the provider.' }),
    client_secret: text({
      default: '',
      secret: 'always',
      description: 'Client secret. Set either this or `client_secret_file`.',
    }),
    client_secret_file: text({
      default: '',
      example: '/etc/postroad/oidc-secret',
      description:
        'File with the client secret; white space around it is ignored. Read at sign-ins, at most once an hour.',
    }),
    name: nonEmpty('a name', {
      default: 'Single sign-on',
      description: 'Label of the button on the sign-in page.',
      example: 'Example SSO',
    }),
    scopes: list(SCOPE, {
      default: ['email', 'profile'],
      example: ['email', 'profile', 'groups'],
      description: 'Scopes requested besides `openid`.',
    }),
    groups_claim: nonEmpty('the name of a claim', {
      default: 'groups',
      description:
        'Claim with the groups of a person: a list of texts, or one text. Read from the ID token, else from the userinfo endpoint.',
    }),
    trust_email: flag({
      default: false,
      description:
        'true treats all email addresses of the provider as verified, even without the claim `email_verified`: only for providers where people cannot change their own address, such as a single tenant of Entra ID.',
    }),
    ca: text({
      default: '',
      example: '/etc/postroad/internal-ca.pem',
      description:
        "PEM file of the CA certificate that signs the provider's certificate, if it is a private one. The public ones are not trusted then.",
    }),
    roles: list(role, {
      default: [],
      description:
        'Roles that groups give. People without any of the groups cannot sign in. Of several roles in one workspace, the first of owner, operator, marketer, viewer counts.',
    }),
  },
  { description: 'Sign-in of operators with OpenID Connect (docs/operators.md).' },
)

export type OidcSettings = Named<typeof OIDC_SECTION>

export function oidcSettings({ sections }: Pick<Config, 'sections'>): OidcSettings {
  // Decoded by this schema.
  return sections['oidc'] as OidcSettings
}

/** Used by `config check`, `serve` and `doctor`. Reads files, uses no network, never throws. */
export function oidcFindings(settings: OidcSettings): Finding[] {
  const { issuer, clientId, clientSecret, clientSecretFile, ca, roles } = settings
  if (issuer === undefined)
    return clientId !== '' || roles.length > 0
      ? [
          warning(
            'oidc',
            'it has no effect: oidc.issuer is not set',
            'set oidc.issuer, or remove the section',
          ),
        ]
      : []
  const findings: Finding[] = []
  if (clientId === '')
    findings.push(fault('oidc.client_id', 'it is not set', 'set it to the id of the client at the provider'))
  if ((clientSecret === '') === (clientSecretFile === ''))
    findings.push(
      fault(
        'oidc.client_secret',
        clientSecret === ''
          ? 'neither client_secret nor client_secret_file is set'
          : 'both client_secret and client_secret_file are set',
        'set one of them',
      ),
    )
  if (clientSecretFile !== '') {
    const read = readable('oidc.client_secret_file', clientSecretFile)
    if ('finding' in read) findings.push(read.finding)
    else if (read.text.trim() === '')
      findings.push(
        fault('oidc.client_secret_file', `${clientSecretFile} is empty`, 'write the secret to it'),
      )
  }
  if (roles.length === 0)
    findings.push(
      fault(
        'oidc.roles',
        'no group gives a role: nobody could sign in',
        'add [[oidc.roles]] with group and role',
      ),
    )
  return ca === '' ? findings : [...findings, ...authorityFindings(ca)]
}

function authorityFindings(file: string): Finding[] {
  const read = readable('oidc.ca', file)
  if ('finding' in read) return [read.finding]
  try {
    new X509Certificate(read.text)
    return []
  } catch (error) {
    return [fault('oidc.ca', `${file} cannot be used: ${describeError(error)}`, 'set it to a PEM file')]
  }
}
