/** Every route that answers a file, in every format it knows, against what the two OpenAPI documents say: media type and shape. */
import t, { type Test } from 'tap'
import { Compile } from 'typebox/compile'
import {
  ADMIN_DOCUMENT,
  ask,
  pathWith,
  readOperations,
  REST_DOCUMENT,
  type Operation,
} from '../../support/api/api-document.js'
import { tokenWith } from '../../support/program/operators.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { until } from '../../support/until.js'

/** Files of other kinds than exports, and what has tests of its own. */
const NOT_ASKED: readonly string[] = [
  ...['streamLive', 'downloadBackup', 'downloadDkimZone', 'getCapturedMailSource', 'getRenderedCapturedMail'],
  ...['getInboundMailSource', 'getRenderedMessage'],
]

/** Answers one of its media types outside of `{data}`. */
function isFile({ method, responses, operationId }: Operation): boolean {
  const types = Object.keys(responses['200']?.content ?? {})
  return method === 'GET' && (types.some(type => type !== 'application/json') || /^export/.test(operationId))
}

function formatsOf({ parameters }: Operation): (string | undefined)[] {
  const format = parameters.find(one => one.name === 'format' && one.in === 'query')
  return [undefined, ...((format?.schema as { enum?: string[] } | undefined)?.enum ?? [])]
}

async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const { key, workspaceId } = appliance
  const post = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  const list = await post('/lists', { name: 'News' })
  const contact = await post('/contacts', {
    email: 'ann@x.example',
    attributes: { plan: 'pro' },
    list_id: list.id,
  })
  await post('/suppressions', { email: 'bob@x.example' })
  const sent = await appliance.send(key, {
    ...{ to: 'ann@x.example', from_email: 'shop@shared.test', subject: 'Hi', html: '<p>Hi</p>' },
  })
  const file = await ask(appliance.baseUrl, {
    ...{ method: 'POST', path: '/api/v1/contacts/import', key, body: 'email\nnobody\n' },
    headers: { 'Content-Type': 'text/csv' },
  })
  const { import_id: importId } = (JSON.parse(file.text) as { data: { import_id: string } }).data
  await until('the import to end', async () => {
    const { body } = await appliance.get(`/api/v1/contacts/imports/${importId}`, { key })
    return body.data.status === 'completed'
  })
  return {
    ...{ baseUrl: appliance.baseUrl, key, workspaceId },
    token: await tokenWith(appliance, 'owner'),
    ids: new Map([
      ['exportContact', contact.id as string],
      ['getRejectedContacts', importId],
      ['getMessageSource', sent.body.data.results[0].message_id as string],
    ]),
  }
}

t.test(
  'each export answers, in each of its formats, the media type and shape that OpenAPI documents',
  async t => {
    const { baseUrl, key, token, workspaceId, ids } = await open(t)
    const asked: string[] = []
    for (const [document, credential] of [
      [REST_DOCUMENT, key],
      [ADMIN_DOCUMENT, token],
    ] as const)
      for (const operation of (await readOperations(baseUrl, document)).filter(isFile)) {
        if (NOT_ASKED.includes(operation.operationId)) continue
        const described = operation.responses['200']?.content ?? {}
        const answered = new Set<string>()
        for (const format of formatsOf(operation)) {
          const name = `${operation.operationId} ${format ?? ''}`
          const path = pathWith(operation, () => ids.get(operation.operationId) ?? '')
          const query = new URLSearchParams({
            ...(format === undefined ? {} : { format }),
            ...(operation.parameters.some(one => one.name === 'workspace_id')
              ? { workspace_id: workspaceId }
              : {}),
          })
          const answer = await ask(baseUrl, {
            method: 'GET',
            path: `${path}?${query.toString()}`,
            key: credential,
          })
          t.equal(answer.status, 200, `${name}: ${answer.text.slice(0, 200)}`)
          const [type = ''] = (answer.headers.get('Content-Type') ?? '').split(';')
          answered.add(type)
          const { schema } = described[type] ?? {}
          if (!t.ok(schema, `${name}: ${type} is documented`) || schema === undefined) continue
          const value: unknown = type === 'application/json' ? JSON.parse(answer.text) : answer.text
          t.ok(Compile(schema).Check(value), `${name}: has the documented shape`)
          t.ok(answer.text.includes('@'), `${name}: and a record`)
          if (type === 'application/jsonl')
            for (const line of answer.text.trimEnd().split('\n')) t.ok(JSON.parse(line), `${name}: ${line}`)
          asked.push(name.trim())
        }
        t.same(
          [...answered].sort(),
          Object.keys(described).sort(),
          `${operation.operationId}: nothing else is documented`,
        )
      }
    t.same(asked.sort(), [
      ...['exportActivity', 'exportActivity csv', 'exportActivity jsonl', 'exportContact', 'exportContacts'],
      ...['exportContacts csv', 'exportContacts json', 'exportSuppressions', 'exportSuppressions csv'],
      ...['exportSuppressions json', 'getMessageSource', 'getRejectedContacts'],
    ])
  },
)
