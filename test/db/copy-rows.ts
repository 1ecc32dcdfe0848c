/** Rows that are hard to pass from one database to the other, in addition to those of the migrations' tests. */
import type { Rows } from './migration-rows.js'

const T = 1_767_607_200_000
const EVERY_OCTET = Uint8Array.from({ length: 256 }, (_, octet) => octet)
const [FIRST, LARGEST] = [4_294_967_297, Number.MAX_SAFE_INTEGER]

/** Text with what SQL, arrays of PostgreSQL and JSON give a meaning to. */
const TEXTS = [
  '',
  ' ',
  'NULL',
  '{a,"b"}',
  `it's "quoted" \\ and \\N`,
  'tab\tline\r\nend\u0001\u001f\u007f',
  'Grüße, 日本語, 😀, e\u0301 and \u2028',
  // Not at the beginning, where PGlite drops it.
  'a\ufeff\ufffd',
  'x'.repeat(70_000),
]
const NUMBERS = [0, 1, -1, 0.1, -9.99, 1e21, 5e-324, 1.7976931348623157e308, LARGEST, -LARGEST]

export const HARD_ROWS: Rows = {
  template_versions: TEXTS.map((text, at) => ({
    ...{ template_id: 't1', version: 100 + at, name: text.slice(0, 50), description: text, html: text },
    ...{ json_structure: at % 2 === 0 ? null : JSON.stringify({ text }), created_at: LARGEST },
  })),
  conversions: NUMBERS.map((value, at) => ({
    ...{ id: `number ${at}`, workspace_id: 'w', contact_id: 'c', value, currency: 'EUR', metadata: '{}' },
    ...{ is_sandbox: 0, created_at: -at },
  })),
  message_parts: [new Uint8Array(), EVERY_OCTET, new Uint8Array(300_000).fill(7)].map((octets, part) => ({
    ...{ content_id: 'parts', part, octets },
  })),
  events: Array.from({ length: 1_100 }, (_, at) => ({
    ...{ kind: 'email.sent', workspace_id: 'w', message_id: `m${at}`, is_sandbox: 0, occurred_at: T + at },
    payload: JSON.stringify({ at }),
  })),
  contacts: [5, 6].map(at => ({
    ...{ seq: FIRST + at, audience: 1, subscribed: 1, is_bounced: 0, created_at: T, updated_at: T },
    ...{
      id: `hard ${at}`,
      email: `hard${at}@one.test`,
      search_text: `hard${at}@one.test\nzoë`,
      attributes: '{}',
    },
  })),
}

/** JSON, stored parsed: keys in no order, keys that are numbers, deep values. */
export const HARD_JSON = JSON.stringify({
  zebra: ['z', null, null, ['b', 'a', 1e21], [0.1, -0.5, 1e-7]],
  'a~20~b': ['ünï "quoted" \\'],
  10: ['ten', 10],
  9: ['nine', 9],
  aa: [null, LARGEST, T],
})
