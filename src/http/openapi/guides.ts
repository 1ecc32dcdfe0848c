/**
 * The guides of the API reference: what all operations have in common.
 *
 * `reference.ts` renders them. Tables of codes, permissions and roles come from the code; samples are those of the operations. Pure.
 */
import { PERMISSIONS } from '../principal.js'
import { ADMIN_PERMISSIONS, ROLES, rolePermissions } from '../roles.js'
import { listErrors } from './errors.js'
import { WEBHOOK_GUIDE } from './webhook-guide.js'

export interface SampleValues {
  /** By name; without them required parameters have their examples. */
  readonly parameters?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface GuideParts {
  /** Base URL of the REST API. */
  readonly base: string
  /** A sample of an operation in all languages, as fences. */
  readonly sample: (operationId: string, values?: SampleValues) => string
}

export interface Guide {
  readonly title: string
  /** One sentence. */
  readonly about: string
  /** Markdown, as `markdown.ts` reads it. */
  readonly text: (parts: GuideParts) => string
}

const MAIL = {
  to: 'ann@example.com',
  from_email: 'shop@example.com',
  subject: 'Your order',
  text: 'Thank you for your order.',
}

const authentication: Guide = {
  title: 'Authentication',
  about: 'API keys, their permissions, sandbox keys, and operators.',
  text: ({ base, sample }) => `
Every request carries an API key in the header \`Authorization: Bearer KEY\`. A key belongs to one workspace, and sees and changes nothing else. The samples
read it from the environment: \`export POSTROAD_KEY=ts_live_...\`

${sample('getKeyPermissions')}

A missing, unknown or revoked key is answered with 401 \`unauthorized\`. Keys are shown once, when they are created; only a digest is stored. Treat them
like passwords: keep them on servers, and give each application its own, so that one can be revoked alone.

\`\`\`sh
postroad key create --workspace ID --name shop --permissions email:send,email:read
\`\`\`

## Permissions

A key has full access or a list of permissions; each operation names the one it requires. Without it the response is 403 \`forbidden\`.

| Resource | Permissions |
|---|---|
${byResource(PERMISSIONS)}

## Sandbox keys

Keys that begin with \`ts_test_\` are for testing. They act on the sandbox of their workspace, a separate data set: nothing leaves the machine, no quota is used, and live
data is neither visible nor changed. Recipients at \`simulator.test\` simulate the result they are named after: \`delivered@\`, \`bounced@\`, \`failed@\`,
\`complained@\`, \`opened@\` and \`clicked@\`.

${sample('sendEmail', { body: { ...MAIL, to: 'bounced@simulator.test' } })}

## Operators

People who run the appliance have accounts with roles, in one workspace or in all. They call the [admin API](/docs/admin) with an operator token,
\`Authorization: Bearer pa_...\`, or with the session of their browser. API keys have no access to it.

With the same token or session operators call the REST API of a workspace: \`X-Workspace\` names the workspace by its id, and \`X-Sandbox: true\` selects its sandbox.

\`\`\`sh
curl ${base}/contacts -H "Authorization: Bearer $POSTROAD_TOKEN" -H "X-Workspace: $WORKSPACE_ID"
\`\`\`

Writes with a session are accepted from the appliance's own pages only. Sensitive actions require a sign-in within the last 15 minutes, and are otherwise
answered with 403 \`sign_in_required\`.

| Role | Permissions |
|---|---|
${ROLES.map(role => `| \`${role}\` | ${roleText(role)} |`).join('\n')}

| Resource | Permissions of operators only |
|---|---|
${byResource(ADMIN_PERMISSIONS)}
`,
}

function byResource(permissions: readonly string[]): string {
  const resources = new Map<string, string[]>()
  for (const name of permissions) {
    const [resource = ''] = name.split(':')
    resources.set(resource, [...(resources.get(resource) ?? []), name])
  }
  return [...resources]
    .map(([resource, names]) => `| ${resource} | ${names.map(name => `\`${name}\``).join(', ')} |`)
    .join('\n')
}

function roleText(role: (typeof ROLES)[number]): string {
  const all: readonly string[] = [...PERMISSIONS, ...ADMIN_PERMISSIONS]
  const held: ReadonlySet<string> = rolePermissions(role)
  const missing = all.filter(name => !held.has(name))
  if (missing.length === 0) return 'all'
  if (missing.length <= 3) return `all but ${missing.map(name => `\`${name}\``).join(', ')}`
  return [...held].map(name => `\`${name}\``).join(', ')
}

const pagination: Guide = {
  title: 'Pagination',
  about: 'Read lists page by page, by offset or by cursor.',
  text: ({ sample }) => `
Lists return \`data\` and \`pagination\`. \`limit\` sets the size of a page: 100 by default, at most 1,000.

${sample('listContacts', { parameters: { limit: '2' } })}

\`\`\`json
{
  "data": [{ "id": "0192f3a4-5b6c-7d8e-9f01-234567890001" }, { "id": "0192f3a4-5b6c-7d8e-9f01-234567890002" }],
  "pagination": {
    "total": 1250,
    "limit": 2,
    "offset": 0,
    "has_more": true,
    "next_cursor": "WzEyNTAsMTc2NzYwNzIwMDAwMF0.x8Yq0bT5nKc2Wd1e"
  }
}
\`\`\`

## Cursors

Long lists, such as contacts, messages and events, have a \`next_cursor\`. Send it as \`after\`, with the same filters and order, to read the next page; it is null
on the last one. Rows that are added or deleted meanwhile neither shift nor repeat others, and deep pages are as fast as the first.

${sample('listContacts', { parameters: { limit: '2', after: 'WzEyNTAsMTc2NzYwNzIwMDAwMF0.x8Yq0bT5nKc2Wd1e' } })}

A cursor belongs to one list, its filters and its order; with others it is answered with 400 \`validation_error\`. \`after\` and \`offset\` exclude each other.

## Offsets

Every list accepts \`offset\`, the number of rows to skip. It suits pages that people leaf through. For whole lists use cursors, or
[export contacts](/docs/api/contacts#exportContacts) as a file.
`,
}

const errors: Guide = {
  title: 'Errors',
  about: 'One shape for all errors, with codes that programs can rely on.',
  text: () => `
Every error has an HTTP status and a JSON body. \`code\` is stable; \`message\` is for people and may change; \`path\` names the invalid field of a request,
for example \`to.3\`.

\`\`\`json
{
  "error": {
    "code": "validation_error",
    "message": "subject is required",
    "path": "subject"
  }
}
\`\`\`

Requests are checked in a fixed order: key (401), rate limit (429), permission (403), then the path, query and body (400), then the rules of the operation. The header
\`X-Request-Id\` of the response is in the log of the server.

## Retries

- 429 and 503: wait for the seconds in \`Retry-After\`, then repeat.
- 500, 408 and broken connections: repeat with exponential backoff (1 s, 2 s, 4 s, 8 s) and, for a POST, the same [Idempotency-Key](/docs/idempotency).
- 403 \`limit_reached\`: \`Retry-After\` gives the start of the next period, if there is one.
- Anything else fails again until the request changes.

## Codes

Codes may be added within v1.

| Status | Code | When |
|---|---|---|
${listErrors()
  .map(({ status, code, when }) => `| ${status} | \`${code}\` | ${when} |`)
  .join('\n')}
`,
}

const idempotency: Guide = {
  title: 'Idempotency',
  about: 'Repeat a request without repeating its effect.',
  text: ({ sample }) => `
A connection can break after a request was executed and before its response arrives. Send a unique \`Idempotency-Key\` with each POST: a repeat with the same key and body
within an hour returns the first response and has no further effect. No mail is sent twice.

${sample('sendEmail', { parameters: { 'Idempotency-Key': 'order-1042' }, body: MAIL })}

The response header \`X-Idempotency-Status\` is \`new\` for the first response and \`cached\` for a repeat.

## Rules

- Every POST of the REST API accepts the header. [Sending a campaign](/docs/api/campaigns#sendCampaign) requires it.
- A key has 1 to 255 characters. Use what identifies the work, such as the number of an order, or a random UUID that is stored with it.
- A key counts within its workspace, method and path. Live and sandbox requests are separate.
- Bodies are compared as JSON: order of fields and white space do not matter. With a different body the response is 409 \`idempotency_conflict\`.
- While the first request is in progress, a repeat is answered with 409 \`conflict\`.
- Only successes are stored. A request that failed can be repeated with the same key.
- Uploaded files are not compared: key and query identify an upload.
`,
}

const rateLimits: Guide = {
  title: 'Rate limits',
  about: 'Requests and emails per minute, and the quotas of a workspace.',
  text: () => `
Each key has a limit of requests per minute and one of emails per minute, both 100 by default and both in a sliding window. The operator sets them when
creating a key; 0 means no limit.

| Response header | Meaning |
|---|---|
| \`X-RateLimit-Limit\` | requests per minute; 2147483647 without a limit |
| \`X-RateLimit-Remaining\` | requests left in the current minute |
| \`X-RateLimit-Reset\` | when the oldest counted request leaves the window, ISO 8601 |
| \`Retry-After\` | with 429: seconds until the request may succeed |

A request over a limit is answered with 429 \`rate_limited\`. If the limit of emails was exceeded, the \`X-RateLimit\` headers describe that one.

## Emails

A single send counts its recipients when it is accepted. A [batch](/docs/api/email#sendEmailBatch) is one request of up to 1,000 emails: it is accepted at once and released to the
queue at the key's rate, so send many emails as batches.

## Quotas

A workspace has an hourly and a daily limit of emails, 1,000 and 10,000 by default. A request that would exceed one is refused as a whole with 403 \`limit_reached\`.
Sandbox keys use no quota.
`,
}

const smtp: Guide = {
  title: 'Sending by SMTP',
  about: 'Send from applications that speak SMTP, with an API key as password.',
  text: () => `
| Setting | Value |
|---|---|
| Server | the host name of the appliance |
| Port | 465 with TLS from the start, or 587 with STARTTLS |
| User name | \`apikey\`, or the id of the workspace |
| Password | an API key with the permission \`smtp:send\` |

\`\`\`sh
swaks --server mail.example.com:465 --tls-on-connect --auth-user apikey --auth-password "$POSTROAD_KEY" \\
  --from shop@example.com --to ann@example.net
\`\`\`

The reply \`250 2.0.0 Accepted as 0197...\` means that the message is stored on disk, and names the id of each recipient's message, with which the
[API](/docs/api/email#getEmail) shows its status and trace. Rules and limits are those of the API: From must be at a verified domain or is replaced by the shared address,
and suppressed recipients are accepted and recorded as \`suppressed\`.

## Control fields

Header fields of the mail set options; they are removed before delivery. An unknown or invalid one is rejected with \`550 5.6.0\`.

| Field | Value | Effect |
|---|---|---|
| \`X-Postroad-Tag\` | \`invoice, shop\` | tags of the message, at most 20 |
| \`X-Postroad-Track\` | \`opens\`, \`clicks\`, \`opens,clicks\` or \`none\` | what is tracked |
| \`X-Postroad-Template\` | id of a template | the template replaces the text of the mail |
| \`X-Postroad-Data\` | a JSON object | values of the template's merge tags |
| \`X-Postroad-Footer\` | \`yes\` or \`no\` | whether the compliance footer is added |

## Replies

| Reply | Reason |
|---|---|
| \`530 5.7.0\` | login or TLS required |
| \`535 5.7.8\` | the key is unknown or revoked, or the user name belongs to another workspace |
| \`454 4.7.0\` | too many failed logins; try again later |
| \`550 5.7.1\` | the key lacks \`smtp:send\`, or From is at a domain that is not verified |
| \`451 4.7.1\` | a limit of the key or the workspace is reached; try again later |
| \`452 4.3.1\` | the disk is nearly full or the database cannot be written; try again later |
| \`553 5.1.3\` | the recipient address is invalid |
| \`552 5.3.4\` | the message is too large |
`,
}

export const GUIDES: readonly Guide[] = [
  authentication,
  pagination,
  errors,
  idempotency,
  rateLimits,
  WEBHOOK_GUIDE,
  smtp,
]
