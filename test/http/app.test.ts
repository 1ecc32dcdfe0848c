/** The frame over real HTTP: bodies good and hostile, errors, lists, HEAD. */
import { connect } from 'node:net'
import t from 'tap'
import { serveRoutes } from '../support/api/api.js'
import { testRoutes } from '../support/api/test-routes.js'

const NOTES = '/api/v1/notes'

t.test('an answer stands in data, with the status that the handler chose', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const taken = await ask({ method: 'POST', path: NOTES, body: { text: 'Grüße' } })
  t.match(taken, { status: 201, json: { data: { id: 'n9', text: 'Grüße' } } })
  t.equal((await ask({ method: 'POST', path: NOTES, body: { text: 'later' } })).status, 202)
})

t.test('an error has code, message and, where a field is at fault, its path', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const duplicate = await ask({ method: 'POST', path: NOTES, body: { text: 'taken' } })
  t.equal(duplicate.status, 409)
  t.same(duplicate.json, { error: { code: 'duplicate', message: 'there is such a note', path: 'text' } })
  const missing = await ask({ path: `${NOTES}/none` })
  t.same(missing.json, { error: { code: 'not_found', message: 'no such note' } })
})

t.test('a list is paged', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const idsOf = (json: unknown) => (json as { data: { id: string }[] }).data.map(({ id }) => id)
  const all = await ask({ path: NOTES })
  t.same(idsOf(all.json), ['n1', 'n2', 'n3', 'n4', 'n5'])
  t.match(all.json, { pagination: { total: 5, limit: 100, offset: 0, has_more: false } })
  const page = await ask({ path: `${NOTES}?limit=2&offset=2` })
  t.same(idsOf(page.json), ['n3', 'n4'])
  t.match(page.json, { pagination: { total: 5, limit: 2, offset: 2, has_more: true } })
  const beyond = await ask({ path: `${NOTES}?offset=7` })
  t.same(beyond.json, {
    data: [],
    pagination: { total: 5, limit: 100, offset: 7, has_more: false, next_cursor: null },
  })
})

t.test('a page that cannot be is refused by name', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  for (const [query, path] of [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['offset=-1', 'offset'],
    ['limit=1&limit=2', 'limit'],
    ['page=2', 'page'],
    ['__proto__=1', '__proto__'],
  ])
    t.match(
      await ask({ path: `${NOTES}?${query}` }),
      { status: 400, json: { error: { code: 'validation_error', path } } },
      String(query),
    )
})

t.test('an unknown path is not found, and below the base only for who has a key', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  for (const path of ['/', '/notes', '/api/v1/nothing', '/api/v1/notes/n1/more', '/api/v1/../../etc/passwd'])
    t.match(
      await ask({ path }),
      { status: 404, json: { error: { code: 'not_found', message: 'no such path' } } },
      path,
    )
  for (const key of [null, 'wrong'])
    t.match(await ask({ path: '/api/v1/nothing', key }), { status: 401 }, String(key))
  t.match(await ask({ path: '/api/v1nothing', key: null }), { status: 404 })
})

t.test('another method than a path takes is a 405 that names those it takes', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  for (const [method, path, allow] of [
    ['PATCH', NOTES, 'GET, HEAD, OPTIONS, POST'],
    ['PUT', `${NOTES}/n1`, 'DELETE, GET, HEAD, OPTIONS'],
    ['POST', '/local', 'GET, HEAD, OPTIONS'],
  ] as const) {
    const answer = await ask({ method, path })
    t.match(answer, { status: 405, json: { error: { code: 'method_not_allowed' } } }, `${method} ${path}`)
    t.equal(answer.headers.allow, allow)
  }
  t.match(await ask({ method: 'PATCH', path: NOTES, key: null }), { status: 401 })
  t.match(await ask({ method: 'POST', path: '/api/v1/open', key: null }), { status: 405 }, 'an open path')
  const behindProxy = { 'X-Forwarded-For': '192.0.2.1' }
  t.match(await ask({ method: 'POST', path: '/local', headers: behindProxy }), { status: 404 })
})

t.test('OPTIONS lists the methods, and a trailing slash or a body with GET is accepted', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const options = await ask({ method: 'OPTIONS', path: NOTES, key: null })
  t.match(options, { status: 204, text: '', headers: { allow: 'GET, HEAD, OPTIONS, POST' } })
  t.match(await ask({ method: 'OPTIONS', path: '/nowhere', key: null }), { status: 404 })
  t.match(await ask({ path: `${NOTES}/` }), { status: 200 })
  t.match(await ask({ path: NOTES, body: { unread: 'x'.repeat(1_000_000) } }), { status: 200 })
})

t.test('a path that is no text is refused without a word in the error log', async t => {
  const { ask, log } = await serveRoutes(t, testRoutes)
  for (const path of ['/api/v1/notes/%zz', '/api/v1/notes/%ff%fe', '/%', '/api/v1/notes?limit=%zz']) {
    const { status } = await ask({ path })
    t.ok(status === 400 || status === 404, `${path} ${status}`)
  }
  t.same(
    log.lines.filter(line => line.level === 'error'),
    [],
  )
})

t.test('HEAD answers as GET would, without the body', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const get = await ask({ path: NOTES })
  const head = await ask({ method: 'HEAD', path: NOTES })
  t.equal(head.status, 200)
  t.equal(head.text, '')
  t.equal(head.headers['content-length'], get.headers['content-length'])
  t.equal((await ask({ method: 'HEAD', path: '/nowhere' })).status, 404)
})

t.test('a body that is no JSON object as declared is refused with a reason', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const bodies: readonly (readonly [string | Uint8Array, RegExp])[] = [
    ['', /body is required/],
    ['{"text":', /not valid JSON/],
    ["{'text': 'a'}", /not valid JSON/],
    ['null', /must be an object/],
    ['[]', /must be an object/],
    ['"text"', /must be an object/],
    [Buffer.from('{"text":"\xff\xfe"}', 'latin1'), /not valid UTF-8/],
    [Buffer.from('{"text":"a"}', 'utf16le'), /not valid/],
  ]
  for (const [body, message] of bodies)
    t.match(
      await ask({ method: 'POST', path: NOTES, body }),
      { status: 400, json: { error: { code: 'validation_error', path: 'body', message } } },
      String(message),
    )
})

t.test('a byte order mark before the JSON does no harm', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  t.equal((await ask({ method: 'POST', path: NOTES, body: '\ufeff{"text":"a"}' })).status, 201)
})

t.test('JSON nested a hundred thousand deep is refused and the server keeps running', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  t.equal((await ask({ method: 'POST', path: NOTES, body: deep })).status, 400)
  t.equal((await ask({ method: 'POST', path: NOTES, body: `{"text":${deep}}` })).status, 400)
  t.equal((await ask({ method: 'POST', path: NOTES, body: '{"text":'.repeat(25_000) })).status, 400)
  t.match(await ask({ method: 'POST', path: NOTES, body: `{"text":"a","extra":${deep}}` }), {
    status: 400,
    json: { error: { path: 'body', message: /deeper than 100 levels/ } },
  })
  t.equal((await ask({ path: NOTES })).status, 200)
})

t.test('a field called __proto__ changes nothing and is an unknown field', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  for (const body of [
    '{"text":"a","__proto__":{"admin":true}}',
    '{"text":"a","constructor":{"prototype":{"admin":true}}}',
  ])
    t.match(await ask({ method: 'POST', path: NOTES, body }), {
      status: 400,
      json: { error: { path: /^(__proto__|constructor)$/ } },
    })
  t.equal(({} as Record<string, unknown>)['admin'], undefined)
})

t.test('a body of ten megabytes gets a readable refusal', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const body = JSON.stringify({ text: 'x'.repeat(10 * 1_024 * 1_024) })
  for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }] as Record<string, string>[]) {
    const answer = await ask({ method: 'POST', path: NOTES, body, headers })
    t.equal(answer.status, 400)
    t.same(answer.json, {
      error: {
        code: 'validation_error',
        path: 'body',
        message: 'body is larger than 256KB, the maximum for this request',
      },
    })
  }
})

t.test('a client that sends everything before it reads gets the refusal as well', async t => {
  const { port } = await serveRoutes(t, testRoutes)
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const body = Buffer.alloc(10 * 1_024 * 1_024, 'x')
  socket.pause()
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.write(
      `POST ${NOTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    socket.write(body, error => (error ? reject(error) : resolve()))
  })
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  t.match(answer, /^HTTP\/1\.1 400 /)
  t.match(answer, /"path":"body"/)
})

t.test('an endless request is cut off', async t => {
  const { port, ask } = await serveRoutes(t, testRoutes)
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.on('error', () => undefined)
  socket.write(
    `POST ${NOTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(0x100000, 'x'), Buffer.from('\r\n')])
  const closed = new Promise<void>(resolve => socket.on('close', resolve))
  let sent = 0
  const send = (): void => {
    while (!socket.destroyed && sent < 1_000) {
      sent += 1
      if (!socket.write(chunk)) {
        socket.once('drain', send)
        return
      }
    }
  }
  send()
  await closed
  // Who never stops may lose the answer to the reset that ends the connection; nothing else may be said.
  t.match(answer, /^(?:HTTP\/1\.1 400 |$)/)
  t.ok(sent < 300, `cut off after ${sent} MB`)
  t.equal((await ask({ path: NOTES })).status, 200)
})

t.test('a client that goes away in the middle of its body harms nobody', async t => {
  const { port, ask, log } = await serveRoutes(t, testRoutes)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST ${NOTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Length: 100\r\n\r\n{"te`,
  )
  await new Promise<void>(resolve => socket.once('connect', resolve))
  await ask({ path: NOTES })
  socket.destroy()
  await ask({ path: NOTES })
  t.same(
    log.lines.filter(line => line.level === 'error'),
    [],
  )
})

t.test('an unexpected error is a 500 without details, and is logged once', async t => {
  const { ask, log } = await serveRoutes(t, testRoutes)
  const answer = await ask({ method: 'DELETE', path: `${NOTES}/n1` })
  t.equal(answer.status, 500)
  t.match(answer.json, { error: { code: 'internal_error' } })
  t.notMatch(answer.text, /secret detail/)
  const errors = log.lines.filter(line => line.level === 'error')
  t.equal(errors.length, 1)
  t.match(errors[0]?.fields, {
    error: 'secret detail of the inside',
    requestId: answer.headers['x-request-id'],
    stack: /test-routes/,
  })
})

t.test('the log names the declared path, never the one asked for', async t => {
  const { ask, log } = await serveRoutes(t, testRoutes)
  await ask({ path: `${NOTES}/ann@example.com` })
  t.match(log.lines.at(-1), { event: 'request refused', fields: { route: 'GET /notes/:id', status: 404 } })
  t.notMatch(JSON.stringify(log.lines), /ann@example/)
})
