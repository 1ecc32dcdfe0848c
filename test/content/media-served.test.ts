/** The media library over HTTP on the running appliance: what is accepted, what is stored of it, and how it is served. */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  animatedPng,
  colorAt,
  exif,
  gif,
  gifComment,
  jpegSegment,
  picture,
  pngChunk,
  pngOf,
  webpCanvas,
  webpChunk,
  webpOf,
  withSegments,
} from '../support/content/images.js'
import { openTestAppliance, type ApplianceOptions } from '../support/program/appliance.js'
import { install } from '../support/program/process.js'
import { readByServer } from '../support/read-by-server.js'
import { longAfter, until } from '../support/until.js'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const MEDIA = '/api/v1/media'

async function open(t: Test, options: ApplianceOptions = {}) {
  const postroad = await openTestAppliance(t, options)
  const key = await postroad.makeKey()
  const upload = async (file: Uint8Array, query = '', { as = 'image/png', by = key } = {}) => {
    const response = await fetch(`${postroad.baseUrl}${MEDIA}${query}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${by}`, 'Content-Type': as },
      body: Buffer.from(file),
    })
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- matched against what is expected
    return { status: response.status, body: (await response.json()) as any }
  }
  return {
    baseUrl: postroad.baseUrl,
    clock: postroad.clock,
    key,
    workspaceOf: async (name: string) => {
      const { id } = await postroad.json<{ id: string }>('workspace', 'create', name)
      return postroad.makeKey('--workspace', id)
    },
    makeKey: (...more: string[]) => postroad.makeKey(...more),
    run: (...command: string[]) => postroad.run(...command),
    stop: () => postroad.stop(),
    sql: (statement: string) => postroad.sql(statement),
    get: (path: string, by = key) => postroad.get(path, { key: by }),
    post: (path: string, body: object) => postroad.post(path, body, { key }),
    upload,
    /** `data` of an image that has to be accepted. */
    stored: async (file: Uint8Array, query = '') => {
      const { status, body } = await upload(file, query)
      t.match(status, 201, JSON.stringify(body))
      return body.data
    },
    see: (path: string) => postroad.get(MEDIA + path, { key }),
    change: (path: string, body: object, headers = {}) =>
      postroad.patch(MEDIA + path, body, { key, headers }),
    remove: (path: string, headers = {}) => postroad.delete(MEDIA + path, { key, headers }),
    restore: (id: string) => postroad.post(`${MEDIA}/${id}/restore`, {}, { key }),
    /** The file at a public URL, which need not be reachable under its name. */
    fetched: async (url: string) => {
      const response = await fetch(postroad.baseUrl + new URL(url).pathname)
      return {
        status: response.status,
        headers: response.headers,
        octets: Buffer.from(await response.arrayBuffer()),
      }
    },
  }
}

// answers: DELETE /media/{id}: precondition_failed; PATCH /media/{id}: precondition_failed
// operations: GET /media/{id}
t.test('an image is uploaded, listed, found, changed and served', async t => {
  const { upload, see, change, remove, fetched, get } = await open(t, {
    toml: 'public_url = "https://mail.shop.example"',
  })
  const file = await picture('png', 40, 20)
  const query = `?file_name=${encodeURIComponent('C:\\Bilder\\Grüße.png')}&alt_text=A%20flag`
  const made = await upload(file, query)
  t.match(made, {
    status: 201,
    body: {
      data: {
        file_name: 'Grüße.png',
        alt_text: 'A flag',
        media_type: 'image/png',
        is_animated: false,
        width: 40,
        height: 20,
        variants: [],
        is_sandbox: false,
      },
    },
  })
  const { id, url, sha256, size } = made.body.data
  t.equal(url, `https://mail.shop.example/m/${sha256}.png`)
  const served = await fetched(url)
  t.equal(served.status, 200)
  t.equal(createHash('sha256').update(served.octets).digest('hex'), sha256)
  t.equal(served.octets.length, size)
  t.same(await colorAt('png', served.octets, 0.5, 0.9), await colorAt('png', file, 0.5, 0.9))
  for (const [name, value] of [
    ['content-type', 'image/png'],
    ['cache-control', 'public, max-age=31536000, immutable'],
    ['x-content-type-options', 'nosniff'],
    ['content-security-policy', "default-src 'none'; sandbox"],
  ] as const)
    t.equal(served.headers.get(name), value)

  for (const search of ['grusse', 'FLAG', 'flag grüße'])
    t.match((await see(`?search=${encodeURIComponent(search)}`)).body, {
      data: [{ id }],
      pagination: { total: 1 },
    })
  t.match((await see('?search=flagship')).body, { data: [] })
  const etag = (await see(`/${id}`)).headers.get('etag') ?? ''
  t.match(await change(`/${id}`, { alt_text: null, file_name: 'flag.png' }, { 'If-Match': etag }), {
    status: 200,
    body: { data: { file_name: 'flag.png', alt_text: null, url } },
  })
  t.match(await change(`/${id}`, { alt_text: 'Late' }, { 'If-Match': etag }), { status: 412 })
  t.match(await remove(`/${id}`, { 'If-Match': etag }), { status: 412 })
  t.match(await change(`/${id}`, { alt_text: 'x'.repeat(1_001) }), { status: 400 })
  t.match(await change(`/${id}`, { file_name: '/' }), { status: 400, body: { error: { path: 'file_name' } } })
  t.match(await see('?search=flag&limit=1&count=false'), { body: { data: [{ id }] } })
  t.match((await get('/api/v1/activity')).body.data.slice(0, 2), [
    {
      action: 'image.changed',
      subject: 'flag.png',
      changes: { alt_text: { before: 'A flag', after: null } },
    },
    { action: 'image.uploaded', subject: 'Grüße.png', details: { id } },
  ])
  t.match(await see(`/${MADE_UP}`), { status: 404 })
  t.match(await change(`/${MADE_UP}`, {}), { status: 404 })
})

// answers: POST /media: unsupported_media_type
t.test('a form uploads too, and the content decides what the file is', async t => {
  const { baseUrl, key, upload, fetched } = await open(t)
  const form = new FormData()
  form.set('alt_text', 'Our shop')
  form.set('file', new Blob([await picture('jpeg', 30, 30)], { type: 'text/html' }), 'shop.png')
  const headers = { Authorization: `Bearer ${key}` }
  const response = await fetch(baseUrl + MEDIA, { method: 'POST', headers, body: form })
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- matched against what is expected
  const { data } = (await response.json()) as any
  t.match(data, { file_name: 'shop.png', alt_text: 'Our shop', media_type: 'image/jpeg', url: /\.jpg$/ })
  t.equal((await fetched(data.url)).headers.get('content-type'), 'image/jpeg')
  t.equal((await fetched(data.url.replace(/jpg$/, 'png'))).status, 404, 'under no other name')
  t.match(await upload(await picture('webp', 30, 30), '', { as: 'application/octet-stream' }), {
    status: 201,
    body: { data: { file_name: 'image.webp', media_type: 'image/webp' } },
  })
  t.match(await upload(Buffer.from('<p>'), '', { as: 'text/html' }), { status: 415 })
})

t.test('smaller files are made in the usual widths, and look the same', async t => {
  const { stored, fetched } = await open(t)
  for (const kind of ['jpeg', 'png', 'webp'] as const) {
    const { variants, width, height } = await stored(await picture(kind, 1_300, 650))
    t.same([width, height], [1_300, 650])
    const sizes = variants.map((one: { width: number; height: number }) => [one.width, one.height])
    // What would not be smaller in octets is left out.
    t.same(sizes.slice(0, 2), [
      [300, 150],
      [600, 300],
    ])
    if (kind === 'jpeg') t.same(sizes[2], [1_200, 600])
    const { octets } = await fetched(variants[1].url)
    t.equal(octets.length, variants[1].size)
    const { color, ...size } = await colorAt(kind, octets, 0.5, 0.9)
    t.same(size, { width: 600, height: 300 })
    t.ok((color[0] ?? 0) > 180 && (color[1] ?? 0) < 90, `red below: ${color.join()}`)
  }
  const { variants } = await stored(await picture('png', 590, 100))
  t.match(variants, [{ width: 300 }], 'none is as wide as the image or wider')
})

t.test('metadata, comments and whatever follows the picture are not stored', async t => {
  const { stored, fetched } = await open(t)
  const secret = 'SECRET<script>alert(1)</script>'
  const trailer = Buffer.from(`PK\x03\x04${secret}`)
  const note = Buffer.from(`Comment\0${secret}`)
  const canvas = webpCanvas(30, 20)
  const picturesWebp = (await picture('webp', 30, 20)).subarray(12)
  const files = [
    Buffer.concat([
      pngOf(1, 1, Buffer.from([0, 255]), pngChunk('tEXt', note), pngChunk('zzZz', note)),
      trailer,
    ]),
    Buffer.concat([
      withSegments(
        await picture('jpeg', 30, 20),
        exif(1, secret),
        jpegSegment(0xfe, note),
        jpegSegment(0xed, note),
      ),
      trailer,
    ]),
    Buffer.concat([gif(2, gifComment(secret)), trailer]),
    Buffer.concat([webpOf(canvas, picturesWebp, webpChunk('EXIF', note), webpChunk('XMP ', note)), trailer]),
  ]
  for (const file of files) {
    const { url, width, media_type: type } = await stored(file)
    const { octets } = await fetched(url)
    t.notOk(octets.includes('SECRET') || octets.includes('PK'), type)
    t.ok(octets.length < file.length && width > 0)
  }
})

t.test('a photo stays as it was turned, and keeps its colours and no place', async t => {
  const { stored, fetched } = await open(t)
  const profile = jpegSegment(0xe2, Buffer.from('ICC_PROFILE\0\x01\x01a profile', 'latin1'))
  const photo = withSegments(await picture('jpeg', 800, 400), exif(6, 'N 48 E 11'), profile)
  const { width, height, url, variants } = await stored(photo)
  t.same([width, height], [400, 800], 'turned by a quarter')
  const { octets } = await fetched(url)
  t.ok(octets.includes('a profile') && octets.includes('Exif'))
  t.notOk(octets.includes('N 48'))
  t.match(variants, [{ width: 300, height: 600 }])
  const small = (await fetched(variants[0].url)).octets
  t.ok(small.includes('a profile'))
  const { color } = await colorAt('jpeg', small, 0.1, 0.5)
  t.ok((color[0] ?? 0) > 180, `what was below is at the left: ${color.join()}`)
})

t.test('animations are stored as they are, in one size', async t => {
  const { stored, fetched } = await open(t)
  const frame = webpChunk(
    'ANMF',
    Buffer.concat([Buffer.alloc(16), (await picture('webp', 1, 1)).subarray(12)]),
  )
  const animations = [
    gif(3),
    animatedPng(),
    webpOf(webpCanvas(1, 1), webpChunk('ANIM', Buffer.alloc(6)), frame),
  ]
  for (const file of animations) {
    const { url, variants, is_animated: isAnimated, media_type: type } = await stored(file)
    t.ok(isAnimated, type)
    t.same(variants, [])
    t.equal((await fetched(url)).octets.length, file.length)
  }
  t.match(await stored(gif(1)), { is_animated: false, media_type: 'image/gif' })
})

t.test('files that are no image, cut short, damaged or too large are refused', async t => {
  const { upload, see } = await open(t, { toml: '[media]\nfile_size = "64KB"\npixels = 1_000_000' })
  const [png, jpeg, webp] = [
    await picture('png', 60, 60),
    await picture('jpeg', 60, 60),
    await picture('webp', 60, 60),
  ]
  const cut = (file: Buffer, by = 40) => file.subarray(0, file.length - by)
  const changed = (file: Buffer, at: number, octet: number) => {
    const copy = Buffer.from(file)
    copy.writeUInt8(octet, at)
    return copy
  }
  const frame = jpeg.indexOf(Buffer.from([0xff, 0xc2]))
  t.ok(frame > 0)
  const refused: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ['an empty file', Buffer.alloc(0), /is empty/],
    [
      'SVG',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
      /is no PNG, JPEG, GIF or WebP/,
    ],
    ['HTML', Buffer.from('<!doctype html><script>alert(1)</script>'), /is no PNG/],
    ['HTML behind the name of a GIF', Buffer.from('GIF89a/*<script>alert(1)</script>*/=1;'), /the file/],
    ['a BMP', Buffer.from('BM      '), /is no PNG/],
    [
      'a PNG that unpacks to 4 gigapixels',
      pngOf(65_535, 65_535, Buffer.alloc(100)),
      /65535 x 65535 pixels; at most 1 million/,
    ],
    ['a PNG of one row too many', pngOf(1_000, 1_001, Buffer.alloc(100)), /1000 x 1001 pixels/],
    ['a PNG without pixels', pngOf(0, 5, Buffer.alloc(1)), /has no pixels/],
    ['a PNG with too few pixels', pngOf(900, 900, Buffer.alloc(10)), /cannot be decoded/],
    ['half a PNG', cut(png), /ends before the picture/],
    ['a PNG with a wrong checksum', changed(png, 50, 0), /is damaged \(a checksum is wrong\)/],
    ['half a JPEG', cut(jpeg), /ends before the picture/],
    ['a JPEG of 12 bits', changed(jpeg, frame + 4, 12), /more than 8 bits/],
    ['a JPEG for printing', changed(jpeg, frame + 9, 4), /CMYK/],
    ['a JPEG with arithmetic coding', changed(jpeg, frame + 1, 0xca), /kind of JPEG/],
    ['a JPEG of 65535 by 65535', changed(changed(jpeg, frame + 5, 255), frame + 7, 255), /pixels; at most/],
    [
      'a JPEG with two headers',
      Buffer.concat([
        jpeg.subarray(0, frame),
        jpegSegment(0xc0, Buffer.from([8, 0, 9, 0, 9, 1])),
        jpeg.subarray(frame),
      ]),
      /two headers/,
    ],
    ['half a GIF', cut(gif(2), 5), /ends before the picture/],
    ['half a WebP', cut(webp), /ends before the picture/],
    [
      'a WebP that says one pixel and has more',
      webpOf(webpCanvas(1, 1), webp.subarray(12)),
      /two different sizes/,
    ],
    ['a WebP without a picture', webpOf(webpCanvas(9, 9)), /has no pixels/],
  ]
  for (const [name, file, why] of refused)
    t.match(
      await upload(file),
      { status: 400, body: { error: { code: 'validation_error', path: 'file', message: why } } },
      name,
    )
  t.match(await upload(Buffer.alloc(65 * 1_024)), {
    status: 400,
    body: { error: { message: /larger than 64KB/ } },
  })
  t.match(await see(''), { body: { data: [] } })
  t.match(await upload(png), { status: 201 }, 'and the next one is accepted')
})

t.test('the same file is one image, in each workspace its own', async t => {
  const { upload, workspaceOf, see, remove, fetched } = await open(t)
  const file = await picture('png', 20, 20)
  const first = await upload(file, '?file_name=a.png')
  const again = await upload(file, '?file_name=b.png')
  t.match(again, { status: 200, body: { data: { id: first.body.data.id, file_name: 'a.png' } } })
  const other = await workspaceOf('other')
  const theirs = await upload(file, '?file_name=c.png', { by: other })
  t.match(theirs, { status: 201, body: { data: { file_name: 'c.png', url: first.body.data.url } } })
  t.not(theirs.body.data.id, first.body.data.id)
  t.match(await see(`/${String(theirs.body.data.id)}`), { status: 404 })
  t.match(await remove(`/${String(theirs.body.data.id)}`), { status: 404 })
  t.match(await remove(`/${String(first.body.data.id)}`), { status: 200 })
  t.equal((await fetched(first.body.data.url)).status, 200, 'the other workspace has it still')
})

t.test('a sandbox has a library of its own', async t => {
  const { upload, makeKey, see } = await open(t)
  const sandbox = await makeKey('--sandbox')
  const made = await upload(await picture('png', 20, 20), '', { by: sandbox })
  t.match(made, { status: 201, body: { data: { is_sandbox: true } } })
  t.match(await see(`/${String(made.body.data.id)}`), { status: 404 })
  t.match(await see(''), { body: { data: [] } })
})

t.test('a key needs the permission for templates', async t => {
  const { upload, makeKey, get } = await open(t)
  const file = await picture('png', 20, 20)
  const reader = await makeKey('--permissions', 'templates:read')
  t.match(await upload(file, '', { by: reader }), { status: 403, body: { error: { code: 'forbidden' } } })
  t.match(await get(MEDIA, reader), { status: 200 })
  const sender = await makeKey('--permissions', 'email:send')
  t.match(await get(MEDIA, sender), { status: 403 })
})

// answers: POST /media: request_timeout
t.test('an upload that stalls is answered after a minute, and nothing of it is kept', async t => {
  const { baseUrl, key, clock, see } = await open(t)
  const stalled: RequestInit = {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'image/png' },
    body: new ReadableStream({ start: controller => controller.enqueue(Buffer.from('\x89PNG', 'latin1')) }),
    duplex: 'half',
  }
  let answer: Response | undefined
  void fetch(baseUrl + MEDIA, stalled).then(response => (answer = response))
  const { status, body } = await until('the answer', async () => {
    await clock.advance(61_000)
    return answer && { status: answer.status, body: await answer.json() }
  })
  t.match([status, body], [408, { error: { code: 'request_timeout' } }])
  t.same((await see('')).body.data, [])
})

// answers: POST /media/{id}/restore: not_found
t.test('a deleted image is no longer served, and can be restored for 30 days', async t => {
  const { stored, see, remove, restore, fetched, clock, sql } = await open(t)
  const { id, url } = await stored(await picture('png', 20, 20))
  t.equal((await fetched(url)).status, 200)
  t.match(await restore(id), { status: 404 })
  t.match(await remove(`/${String(id)}`), { status: 200, body: { data: { success: true } } })
  t.equal((await fetched(url)).status, 404)
  t.match(await see(`/${String(id)}`), { status: 404 })
  t.match(await see(''), { body: { data: [] } })
  t.match(await remove(`/${String(id)}`), { status: 404 })
  t.match(await restore(id), { status: 200, body: { data: { url } } })
  t.equal((await fetched(url)).status, 200)
  await remove(`/${String(id)}`)
  t.match(await stored(await picture('png', 21, 20)), { id: /./ })
  clock.skip(30 * DAY_MS + 1)
  t.match(await restore(id), { status: 404 })
  await longAfter(clock, HOUR_MS)
  await until('it to be removed', () => sql('select id from media').length === 1)
  t.equal(sql('select * from media_parts').length, 1, 'with its files')
})

// answers: DELETE /media/{id}: conflict
t.test('an image that a template shows is deleted by force only', async t => {
  const { stored, remove, post } = await open(t)
  const { id, variants } = await stored(await picture('jpeg', 700, 100))
  const template = { name: 'Welcome', html: `<img src="${String(variants[1].url)}" alt="">` }
  t.match(await post('/api/v1/templates', template), { status: 201 })
  t.match(await remove(`/${String(id)}`), {
    status: 409,
    body: { error: { code: 'conflict', message: /image.jpeg" is used by template "Welcome"/ } },
  })
  t.match(await remove(`/${String(id)}?force=true`), { status: 200 })
})

// answers: POST /media: limit_reached
// operations: GET /media/usage
t.test('a library has a limit, and deleted images make room', async t => {
  const { stored, upload, see, remove, restore } = await open(t, { toml: '[media]\nworkspace_size = "20KB"' })
  const noise = (seed: number) => {
    const rows = Buffer.alloc(91 * 90)
    for (let at = 0, state = seed; at < rows.length; at++) {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      rows.writeUInt8(at % 91 === 0 ? 0 : (state >> 16) & 255, at)
    }
    return pngOf(90, 90, rows)
  }
  const first = await stored(noise(1))
  await stored(noise(2))
  t.match(await see('/usage'), { body: { data: { images: 2, size: Number, limit: 20 * 1_024 } } })
  t.match(await upload(noise(3)), {
    status: 403,
    body: { error: { code: 'limit_reached', message: /at most 20KB of images \(media.workspace_size\)/ } },
  })
  await remove(`/${String(first.id)}`)
  t.match(await see('/usage'), { body: { data: { images: 1 } } })
  t.match(await upload(noise(3)), { status: 201 })
  t.match(await restore(first.id), { status: 404 }, 'its space was needed')
})

t.test('an upload that is broken off leaves nothing behind', async t => {
  const { baseUrl, key, see, sql } = await open(t)
  const file = await picture('png', 400, 400)
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
  const headers = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: image/png\r\nContent-Length: ${file.length}`
  socket.write(`POST ${MEDIA} HTTP/1.1\r\n${headers}\r\n\r\n`)
  socket.write(file.subarray(0, file.length - 100))
  await readByServer(socket)
  socket.destroy()
  await until('nothing to be left', () => sql('select * from media_parts').length === 0)
  t.match(await see(''), { body: { data: [] } })
})

t.test('images are in a backup', { skip: process.env['TEST_POSTGRES_URL'] !== undefined }, async t => {
  const { stored, fetched, run, stop } = await open(t)
  const { url, variants } = await stored(await picture('jpeg', 700, 500))
  const [before, small] = [await fetched(url), await fetched(variants[0].url)]
  const backup = join(t.testdir(), 'postroad.backup')
  t.match(await run('backup', backup), { status: 0 })
  await stop()
  const other = install(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  t.match(await other.run('restore', backup), { status: 0 })
  const { baseUrl } = await other.serve()
  const again = async (file: string) =>
    Buffer.from(await (await fetch(baseUrl + new URL(file).pathname)).arrayBuffer())
  t.same(await again(url), before.octets)
  t.same(await again(variants[0].url), small.octets)
})

// proves: decisions: Added after a day's work > Shares Every bounded resource used
t.test('images that clients do not read keep no other image back', async t => {
  const { stored, fetched, baseUrl } = await open(t, { toml: '[media]\nfile_size = "50MB"' })
  const { url: small } = await stored(await picture('png', 20, 20))
  const { hostname, port } = new URL(baseUrl)
  const large: string[] = []
  const unread = (url: string) => {
    const socket = connect(Number(port), hostname).pause()
    t.teardown(() => socket.destroy())
    socket.write(`GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  }
  for (let seed = 1; seed <= 4; seed++) {
    const { url } = await stored(animatedNoise(4_900, seed))
    large.push(url)
    for (let n = 0; n < 5; n++) unread(url)
  }
  for (const url of [...large, small]) {
    const { status, octets, headers } = await fetched(url)
    t.same([status, headers.get('content-length')], [200, String(octets.length)])
  }
  const head = await fetch(baseUrl + new URL(small).pathname, { method: 'HEAD' })
  t.match([head.status, Number(head.headers.get('content-length')) > 0], [200, true])
})

/** Twenty megabytes that nothing compresses; animations are stored as they come. */
function animatedNoise(side: number, seed: number): Buffer {
  const rows = Buffer.alloc((side + 1) * side)
  const noise = createHash('shake256', { outputLength: 65_521 }).update(String(seed)).digest()
  for (let at = 0; at < rows.length; at += noise.length) noise.copy(rows, at)
  for (let row = 0; row < side; row++) rows[row * (side + 1)] = 0
  return animatedPng(side, rows)
}
