/** Rule -> test for what holds for every request: keys, permissions, errors, rates, pages, form of answers. */
import { inFile, type Row } from '../row.js'

const every = inFile('http/api/every-route')
const sandbox = inFile('http/api/every-route-sandbox')
const answer = inFile('http/api/every-answer')
const open = inFile('http/api/open-routes')
const clients = inFile('http/real-clients')
const storage = inFile('http/storage-served')
const keys = inFile('accounts/key-routes')
const limits = inFile('msa/rest/send-limits')
const validation = inFile('msa/rest/send-validation')
const failures = inFile('msa/rest/send-failures')
const domains = inFile('deliverability/domains-served')
const suppressions = inFile('deliverability/suppressions-served')
const activity = inFile('accounts/activity-routes')

export const FRAME_ROWS: readonly Row[] = [
  {
    rule: 'a single resource is {data: object}; times are ISO 8601 and ids text',
    from: ['Conventions > A single resource is returned', 'Conventions > Timestamps are ISO 8601 strings'],
    tests: [
      domains('adding a domain returns the records to publish'),
      suppressions('an address is suppressed once, whatever its case, and again after removal'),
    ],
  },
  {
    rule: 'a list is {data, pagination: {total, limit, offset, has_more}}',
    from: ['Conventions > A list is returned as'],
    tests: [
      answer('every list begins at the first of at most 100, and shows up to 1,000'),
      domains('domains are listed by name in pages, for their workspace'),
    ],
  },
  {
    rule: 'whatever is sent, the answer has a described status, code and form',
    from: ['Errors > 400', 'Errors > 404'],
    tests: [every('whatever is sent, the answer is described and never an error of the server')],
  },
  {
    rule: "what belongs to another workspace is a 404; a key's workspace is its own",
    from: ['Conventions > Resources belong to a workspace', 'Authentication > 2'],
    tests: [every("another workspace's things are a 404 as well")],
  },
  {
    rule: 'creates 201, accepted for later 202, else 200; DELETE is {data: {success: true}}',
    from: ['Errors > 200', 'Errors > 201', 'Errors > 202'],
    tests: [
      domains('adding a domain returns the records to publish'),
      domains('a removed domain is gone and can be added again'),
      suppressions('an address is suppressed once, whatever its case, and again after removal'),
      inFile('msa/rest/batch')('each message of a batch is mailed to its own recipient with its own content'),
      inFile('msa/schedule')('a scheduled mail waits for its time and is then sent'),
    ],
  },
  {
    rule: 'every request but the open ones carries a valid key; without one 401 unauthorized',
    from: ['Authentication > 1', 'Errors > 401', 'Errors > unauthorized'],
    answers: ['keyed: unauthorized'],
    tests: [
      every('without a valid key every route but the open ones is a 401'),
      limits('a request without a valid key is refused before anything else'),
      keys('the Authorization scheme is case-insensitive, and malformed values are refused'),
    ],
  },
  {
    rule: 'a revoked key gives 401 unauthorized',
    from: ['Authentication > 4'],
    tests: [keys('a revoked key is unauthorized')],
  },
  {
    rule: 'a valid key without the permission gives 403 forbidden',
    from: [
      'Authentication > 4',
      'Errors > 403',
      'decisions: Accounts and keys > Permissions are resourceaction emailsend emailread',
    ],
    answers: ['permitted: forbidden'],
    tests: [
      every('with a key that lacks the permission, every route that needs one is a 403'),
      limits('a key may do what its permissions say and nothing else'),
    ],
  },
  {
    rule: 'a key whose workspace is gone gives 404 workspace_not_found',
    from: ['Authentication > 4', 'Errors > workspace_not_found'],
    answers: ['keyed: workspace_not_found'],
    tests: [
      answer(
        'a key of a removed workspace is a 404 workspace_not_found on every route that needs a workspace',
      ),
      limits('a key of a removed workspace gets an error that says so'),
    ],
  },
  {
    rule: 'live keys begin with ts_live_, sandbox keys with ts_test_',
    from: ['Authentication > 3', 'decisions: Accounts and keys > Key prefixes ts_live_ and ts_test_'],
    tests: [keys('live and sandbox keys have different prefixes')],
  },
  {
    rule: 'a sandbox key acts on the sandbox of its workspace: it neither sees nor touches live data, nor is the sandbox seen',
    from: [],
    tests: [
      sandbox('every route called with a sandbox key leaves live rows unchanged and shows none'),
      sandbox('nothing of a sandbox shows to a live key, or to another sandbox'),
    ],
  },
  {
    rule: 'GET /api-key/permissions tells name, type, permissions, rate_limit and is_sandbox',
    from: [
      'Authentication > 5',
      'Other resources > API key introspection fields name',
      'Deliverability, domains, analytics, tracking > GET /api-key/permissions',
      'decisions: Accounts and keys > GET /api-key/permissions -> {name string',
    ],
    tests: [keys('a key can read its name, type, permissions, rate limit and sandbox flag')],
  },
  {
    rule: 'a new workspace may send 1,000 mails an hour and 10,000 a day; its settings fill in what a send leaves out',
    from: ['decisions: Accounts and keys > Workspace settings name default_from_email default_from_name'],
    tests: [
      keys('a new workspace has 1,000 emails per hour and 10,000 per day'),
      limits('a limit of 0 means unlimited'),
      inFile('msa/rest/send-sender')("the workspace's defaults stand in for what the request leaves out"),
    ],
  },
  {
    rule: 'over its requests per minute (sliding) a key gets 429 rate_limited with Retry-After, always by this name',
    from: [
      'Errors > 429',
      'Errors > rate_limited',
      'Errors > rate_limit_exceeded',
      'decisions: Accounts and keys > Each key has rate_limit (requests/min',
    ],
    answers: ['keyed: rate_limited'],
    tests: [
      answer('a key over its rate is a 429 on every route that needs one, and passes after Retry-After'),
      keys('a new key has 100 requests in any minute, counted down in every response'),
      limits('requests beyond the rate of a key are refused before their body is looked at'),
    ],
  },
  {
    rule: "single sends count their recipients against the key's emails per minute at admission, refused whole",
    from: ['decisions: Accounts and keys > Each key has rate_limit (requests/min'],
    tests: [
      limits("recipients beyond a key's email rate are refused whole"),
      limits('of fifty sends at once no more pass than ${name} allows'),
      limits('a request refused by the limit of its workspace uses nothing of its key up'),
    ],
  },
  {
    rule: 'X-RateLimit-Limit, -Remaining and -Reset stand on every answer, errors included',
    from: ['Limits > Rate-limit response headers'],
    tests: [
      answer('every route shows the limits of its caller, whether it answers or refuses'),
      open('an unknown path is a 404 in the form of every error'),
      keys('a new key has 100 requests in any minute, counted down in every response'),
    ],
  },
  {
    rule: 'callers without a valid key are counted by address',
    from: ['Errors > 429'],
    tests: [open('callers without a valid key are counted by address, and refused beyond their rate')],
  },
  {
    rule: 'errors come in the order 401, 429, 403, 400, rules of the business, limits',
    from: ['Errors > 400'],
    tests: [
      keys('of several faults the first in the order 401, 429, 403, 400, rule, limit is returned'),
      validation('every refused request names its fault and leaves nothing behind'),
    ],
  },
  {
    rule: 'an invalid body or query is a 400 validation_error whose path names the field',
    from: ['Errors > validation_error'],
    answers: ['any: validation_error'],
    tests: [
      answer('what a query cannot be is a 400 on every route, naming the field'),
      validation('every refused request names its fault and leaves nothing behind'),
      every('whatever is sent, the answer is described and never an error of the server'),
    ],
  },
  {
    rule: 'one past any bound of a body is a 400 that names the field, the bound itself is not refused',
    from: ['Errors > validation_error'],
    tests: [
      inFile('http/api/every-bound')(
        'one past each bound of a body is a 400 that names the field; the bound itself is not refused',
      ),
    ],
  },
  {
    rule: 'what does not exist is a 404 not_found',
    from: ['Errors > not_found'],
    answers: ['naming: not_found'],
    tests: [every('what does not exist is a 404 on every route that names one thing')],
  },
  {
    rule: 'routes for this machine alone do not exist for others',
    from: [],
    tests: [answer('a route for this machine alone is a 404 through a proxy')],
  },
  {
    rule: 'an unexpected error is a 500 internal_error that tells nothing, leaves nothing and is safe to repeat',
    from: ['Errors > 500', 'Errors > internal_error'],
    answers: ['keyed: internal_error'],
    tests: [
      answer('a broken database is a 500 on every route that needs a key, and tells nothing of the inside'),
      failures('${name} that cannot be stored is a 500, leaves nothing, and can be repeated'),
    ],
  },
  {
    rule: 'what the appliance cannot do at the moment is a 503 unavailable that says when to come again',
    from: [],
    answers: ['keyed: unavailable'],
    tests: [
      answer('a database that another process holds locked is a 503 with Retry-After, and is waited for'),
      storage('below the disk reserve new mail is refused by every way, and health says so'),
      storage(
        'a database that is moved away under the server is noticed before anything is answered with 200',
      ),
    ],
  },
  {
    rule: 'another method than a path takes is a 405 method_not_allowed with Allow; an unknown path below the base needs a key first',
    from: ['decisions: Email > Optional fields null is as'],
    answers: ['any: method_not_allowed'],
    tests: [
      clients(
        'a method that a path does not take is a 405 with Allow, and an unknown path is a 401 without a key',
      ),
    ],
  },
  {
    rule: 'what is no HTTP, too long or too slow is answered in the form of every error, with the headers of every answer',
    from: [],
    answers: ['any: headers_too_large', 'bodied: request_timeout'],
    tests: [
      clients('what is no HTTP request, and headers without end, are refused in the form of every error'),
      clients('a body that does not arrive in time is a 408'),
    ],
  },
  {
    rule: 'a body may be gzip, bounded by what it unfolds to; another coding or charset is a 415',
    from: ['decisions: Email > Optional fields null is as'],
    answers: ['bodied: unsupported_media_type'],
    tests: [
      clients('a body may be gzip; any other coding or charset is a 415 on every route that takes one'),
    ],
  },
  {
    rule: 'a body has at most 100 levels and 32,768 values (a batch 500,000), with and without an Idempotency-Key',
    from: [],
    tests: [clients('a body of too many values or levels is a 400, with an Idempotency-Key and without')],
  },
  {
    rule: 'the local inbox that cannot be read is a 500',
    from: [],
    tests: [answer('a local inbox that cannot be read is a 500 as well')],
  },
  {
    rule: 'a duplicate, a state that does not allow it, and a conflicting repeat are 409',
    from: ['Errors > 409', 'Errors > duplicate', 'Errors > conflict'],
    answers: ['POST /api/v1/domains: duplicate', 'POST /api/v1/suppressions: duplicate'],
    tests: [
      domains('a domain exists once per workspace, and may exist in another'),
      suppressions('an address is suppressed once, whatever its case, and again after removal'),
    ],
  },
  {
    rule: 'health needs no key',
    from: [
      'What the service does > Health check endpoint that needs',
      'Deliverability, domains, analytics, tracking > GET /health',
    ],
    tests: [
      open('health needs no key, below the version and at the root'),
      storage('health reports a database that cannot write as failing'),
    ],
  },
  {
    rule: 'GET /health/ready says whether a load balancer may send this node requests',
    from: [],
    tests: [open('a load balancer reads whether the node is ready, without a key')],
  },
  {
    rule: 'the base ends in /api/v1; the machine-readable description is served',
    from: [],
    tests: [
      open('the description is at /openapi.json, with the base URL, and contains nothing internal'),
      every('the description is valid OpenAPI 3.1, and its examples pass their own schemas'),
    ],
  },
  {
    rule: 'GET /activity reads the workspace activity log',
    from: [],
    tests: [
      activity('changes by keys and operators are logged, newest first'),
      activity('the log can be filtered and paged, and shows only its own workspace'),
    ],
  },
]
