/** The numbers of the contract, each with a test that keeps to it and one that goes past it. */
import { inFile, type Limit } from './row.js'

const validation = inFile('msa/rest/send-validation')
const limits = inFile('msa/rest/send-limits')
const batch = inFile('msa/rest/batch')
const keys = inFile('accounts/key-routes')
const schedule = inFile('msa/schedule')
const repeats = inFile('msa/rest/send-idempotency')
const failures = inFile('msa/rest/send-failures')
const parts = inFile('msa/rest/send-parts')
const report = inFile('analytics/report-served')
const shop = inFile('analytics/shop-served')
const answer = inFile('http/api/every-answer')
const contacts = inFile('audience/contacts-served')
const audience = inFile('audience/lists-served')

const REFUSED = validation('every refused request names its fault and leaves nothing behind')
const AT_BOUND = validation('what is as large as allowed is accepted')
const BATCH_BOUNDS = batch('a message of a batch has the bounds of a single send')
const SEND = 'POST /api/v1/email/send'
const BATCH = 'POST /api/v1/email/batch'

const both = (...tests: Limit['at']) => ({ at: tests, past: tests })

/** Lists of the appliance that are paged. */
const LISTS = [
  '/email',
  '/email/batch/{batchId}',
  '/contacts',
  '/contacts/imports',
  '/contacts/duplicates',
  '/contacts/{id}/timeline',
  '/lists',
  '/forms',
  '/lists/{id}/members',
  '/segments',
  '/segments/{id}/contacts',
  '/tags',
  '/tags/{id}/contacts',
  '/domains',
  '/domains/{id}/reports',
  '/suppressions',
  '/bounces',
  '/conversions',
  '/activity',
  '/templates',
  '/templates/{id}/versions',
  '/saved-blocks',
  '/media',
  '/automations',
  '/automations/{id}/runs',
  '/campaigns',
  '/campaigns/{id}/recipients',
  '/campaigns/{id}/links',
  '/feeds',
  '/feeds/{id}/runs',
  '/webhooks/triggers',
  '/webhooks/{id}/deliveries',
]

export const LIMITS: readonly Limit[] = [
  {
    name: 'Limits > Requests per API key',
    value: '100 per minute, sliding window',
    ...both(keys('a new key has 100 requests in any minute, counted down in every response')),
  },
  {
    name: 'Limits > Emails per API key',
    value: '100 per minute',
    ...both(keys('a new key has 100 emails per minute, independent of its requests')),
  },
  {
    name: 'Limits > Recipients in one send',
    value: '100',
    schema: [{ operation: SEND, field: 'to', keyword: 'maxItems', value: 100 }],
    at: [AT_BOUND, parts('to, cc and bcc together have at most a hundred addresses')],
    past: [REFUSED, parts('to, cc and bcc together have at most a hundred addresses')],
  },
  {
    name: 'Limits > Messages in one batch',
    value: '1 to 1,000',
    schema: [
      { operation: BATCH, field: 'messages', keyword: 'minItems', value: 1 },
      { operation: BATCH, field: 'messages', keyword: 'maxItems', value: 1_000 },
    ],
    at: [batch('a batch of a thousand is accepted and mailed'), BATCH_BOUNDS],
    past: [batch('a fault of form in any message refuses the whole batch and names it')],
  },
  {
    name: 'Limits > Subject length',
    value: '998 characters',
    schema: [
      { operation: SEND, field: 'subject', keyword: 'maxLength', value: 998 },
      { operation: BATCH, field: 'messages.subject', keyword: 'maxLength', value: 998 },
    ],
    at: [AT_BOUND, BATCH_BOUNDS],
    past: [REFUSED, BATCH_BOUNDS],
  },
  {
    name: 'Limits > from_name length',
    value: '100 characters',
    schema: [
      { operation: SEND, field: 'from_name', keyword: 'maxLength', value: 100 },
      { operation: BATCH, field: 'messages.from_name', keyword: 'maxLength', value: 100 },
    ],
    at: [AT_BOUND, BATCH_BOUNDS],
    past: [REFUSED, BATCH_BOUNDS],
  },
  {
    name: 'Limits > HTML size',
    value: '256 KB',
    schema: [
      { operation: SEND, field: 'html', keyword: 'maxLength', value: 262_144 },
      { operation: BATCH, field: 'messages.html', keyword: 'maxLength', value: 262_144 },
    ],
    at: [AT_BOUND, BATCH_BOUNDS],
    past: [REFUSED, BATCH_BOUNDS],
  },
  {
    name: 'size of text',
    value: '1 MB',
    schema: [
      { operation: SEND, field: 'text', keyword: 'maxLength', value: 1_048_576 },
      { operation: BATCH, field: 'messages.text', keyword: 'maxLength', value: 1_048_576 },
    ],
    at: [AT_BOUND, BATCH_BOUNDS],
    past: [REFUSED, BATCH_BOUNDS],
  },
  {
    name: 'copies (cc, bcc) of a batch',
    value: '2,000',
    ...both(batch('the copies of all messages of a batch have a bound')),
  },
  {
    name: 'Limits > Contact first_name, last_name',
    value: '100 characters each',
    schema: ['first_name', 'last_name'].flatMap(field =>
      ['POST /api/v1/contacts', 'PUT /api/v1/contacts', 'PATCH /api/v1/contacts/{id}'].map(
        operation => ({ operation, field, keyword: 'maxLength', value: 100 }) as const,
      ),
    ),
    ...both(contacts('what cannot be a contact is refused by name')),
  },
  {
    name: 'Limits > Bulk contact delete',
    value: '5,000 ids',
    schema: [
      {
        ...{ operation: 'POST /api/v1/contacts/bulk-delete', field: 'contact_ids' },
        ...{ keyword: 'maxItems', value: 5_000 },
      },
    ],
    ...both(audience('many contacts are deleted for good at once, up to 5,000')),
  },
  {
    name: 'Limits > Soft-deleted contacts restorable',
    value: '30 days',
    ...both(audience('deleting all asks for confirmation, and can be taken back for thirty days')),
  },
  {
    name: 'Limits > Scheduling horizon',
    value: '72 hours',
    ...both(schedule('send_at has to be a moment in the next 72 hours')),
  },
  {
    name: 'Limits > Pagination',
    value: 'limit default 100, at most 1000; offset default 0',
    schema: LISTS.flatMap(path => {
      const operation = `GET /api/v1${path}`
      return [
        { operation, field: 'limit', keyword: 'default', value: 100 },
        { operation, field: 'limit', keyword: 'maximum', value: 1_000 },
        { operation, field: 'limit', keyword: 'minimum', value: 1 },
        { operation, field: 'offset', keyword: 'default', value: 0 },
        { operation, field: 'offset', keyword: 'minimum', value: 0 },
      ] as const
    }),
    ...both(answer('every list begins at the first of at most 100, and shows up to 1,000')),
  },
  {
    name: 'Limits > Idempotency key lifetime',
    value: '1 hour',
    ...both(
      repeats('a key and its stored response expire after an hour'),
      failures('the key of a batch counts for its body, and for an hour'),
    ),
  },
  {
    name: 'Limits > Analytics period',
    value: '90 days',
    ...both(
      report('a period is 1, 7, 30 or 90 days, 30 by default'),
      report('mail sent more than 90 days ago is not counted'),
    ),
  },
  {
    name: 'hourly and daily email limits of a workspace',
    value: '1,000 an hour and 10,000 a day where nothing else is set; 0 is none',
    at: [
      limits('a request that would cross the ${limit} is refused whole'),
      keys('a new workspace has 1,000 emails per hour and 10,000 per day'),
      batch('a batch that would cross a limit of the workspace is refused whole'),
      limits('a limit of 0 means unlimited'),
    ],
    past: [
      limits('a request that would cross the ${limit} is refused whole'),
      limits('of fifty sends at once no more pass than ${name} allows'),
      keys('a new workspace has 1,000 emails per hour and 10,000 per day'),
      batch('a batch that would cross a limit of the workspace is refused whole'),
    ],
  },
  {
    name: 'metadata of conversions and product views',
    value: '8 KB',
    at: [
      shop('a conversion of an unknown contact is a 404 contact_not_found and is not recorded'),
      shop('a product view of an unknown contact is a 404 contact_not_found'),
    ],
    past: [
      shop('an invalid conversion is refused, naming the field, before the contact is looked up'),
      shop('an invalid product view is refused, naming the field, before the contact is looked up'),
    ],
  },
  {
    name: 'Idempotency-Key',
    value: '1 to 255 characters',
    ...both(failures('an Idempotency-Key has 1 to 255 printable characters')),
  },
  {
    name: 'size of a message with its attachments',
    value: 'limits.message_size',
    ...both(parts('attachments that cannot be are refused, and nothing of them stays')),
  },
]
