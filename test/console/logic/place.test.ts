/** The address bar as state: places and the URLs that lead to them. */
import t from 'tap'
import { isInConsole, readPlace, urlFrom, urlWith } from '../../../src/console/web/state/place'

const at = (url: string) => readPlace(new URL(url, 'https://mail.example'))

t.test('a place is the path below the console, and the query', t => {
  t.equal(at('/console').path, '/')
  t.equal(at('/console/').path, '/')
  t.equal(at('/console/messages').path, '/messages')
  t.equal(at('/console/messages//').path, '/messages', 'a slash at the end means nothing')
  t.equal(at('/console/reports/a.example/7?tab=source').path, '/reports/a.example/7')
  t.equal(at('/console/messages?to=%40one.test&status=bounced').query.get('to'), '@one.test')
  t.end()
})

t.test('the chosen workspace and the sandbox go along to every screen, filters do not', t => {
  const place = at('/console/messages?workspace=w1&sandbox=true&status=bounced')
  t.equal(urlFrom(place, '/contacts'), '/console/contacts?workspace=w1&sandbox=true')
  t.equal(urlFrom(place, '/'), '/console/?workspace=w1&sandbox=true')
  t.equal(
    urlFrom(place, '/contacts', { search: 'ann & co' }),
    '/console/contacts?workspace=w1&sandbox=true&search=ann+%26+co',
  )
  t.equal(
    urlFrom(place, '/', { workspace: 'w2' }),
    '/console/?workspace=w2&sandbox=true',
    'unless the link chooses',
  )
  t.equal(urlFrom(place, '/', { workspace: '', sandbox: undefined }), '/console/')
  t.equal(urlFrom(at('/console/'), '/lists'), '/console/lists', 'nothing chosen, nothing in the URL')
  t.end()
})

t.test('a filter changes its parameter only, and an empty one goes', t => {
  const place = at('/console/messages/?workspace=w1&status=bounced&to=ann%40one.test')
  t.equal(
    urlWith(place, { status: 'delivered' }),
    '/console/messages?workspace=w1&status=delivered&to=ann%40one.test',
  )
  t.equal(urlWith(place, { status: '', to: '' }), '/console/messages?workspace=w1')
  t.equal(urlWith(at('/console/lists'), { search: '' }), '/console/lists')
  t.end()
})

t.test('what is filtered by is the same after the URL was shared', t => {
  const filters = { subject: 'a=b&c #1 ?', from: 'änn+news@one.test', since: '2026-03-01' }
  const shared = at(urlWith(at('/console/messages'), filters))
  t.same(Object.fromEntries(shared.query), filters)
  t.equal(shared.path, '/messages')
  t.end()
})

t.test('only links into the console are followed without loading a page', t => {
  for (const inside of ['/console', '/console/', '/console/messages/1']) t.ok(isInConsole(inside), inside)
  for (const outside of ['/', '/docs', '/console2', '/consoles/x', '/api/console/'])
    t.notOk(isInConsole(outside), outside)
  t.end()
})
