/** Going back and forward in the console with and without unsaved changes. */
import t from 'tap'
import { GuardedHistory, type HistoryWindow } from '../../../src/console/web/state/guarded-history'

/** The history of a browser's tab: entries with their state, and `popstate` after a move. */
class Tab implements HistoryWindow {
  private entries: { url: string; state: unknown }[]
  private index = 0
  private listener = () => {}
  scrollY = 0

  constructor(url: string) {
    this.entries = [{ url, state: null }]
  }

  get url() {
    return this.entries[this.index]?.url
  }

  readonly history: HistoryWindow['history'] = Object.defineProperty(
    {
      state: undefined,
      pushState: (state: unknown, _: string, url: string) => {
        this.entries.splice(this.index + 1, Infinity, { url, state })
        this.index += 1
      },
      replaceState: (state: unknown, _: string, url = this.url ?? '') => {
        this.entries[this.index] = { url, state }
      },
      go: (steps = 0) => this.go(steps),
    },
    'state',
    { get: (): unknown => this.entries[this.index]?.state },
  )

  addEventListener(_: 'popstate', listener: () => void) {
    this.listener = listener
  }

  go(steps: number) {
    this.index += steps
    this.listener()
  }

  /** As the address bar does for `#fragment`. */
  typeFragment(url: string) {
    this.entries.splice(this.index + 1, Infinity, { url, state: null })
    this.go(1)
  }
}

/** A tab that went from the list to an object. `answers` says what the person answers when asked; none means that nobody may be asked. */
function opened(...answers: boolean[]) {
  const tab = new Tab('/lists')
  const shown: (string | undefined)[] = []
  const entries = new GuardedHistory(
    tab,
    () => shown.push(tab.url),
    () => {
      const answer = answers.shift()
      if (answer === undefined) throw new Error('nobody should be asked')
      return answer
    },
  )
  entries.push('/lists/1')
  return { tab, entries, shown, left: answers }
}

t.test('Back leaves a screen without changes', t => {
  const { tab, shown } = opened()
  tab.go(-1)
  t.same(shown, ['/lists'])
  t.end()
})

t.test('Back with unsaved changes asks, and "no" keeps the screen and its address', t => {
  const { tab, entries, shown } = opened(false)
  entries.guardWith(() => true)
  tab.go(-1)
  t.equal(tab.url, '/lists/1')
  t.same(shown, [], 'the screen was not taken away')
  t.end()
})

t.test('Back with unsaved changes leaves after "yes"', t => {
  const { tab, entries, shown } = opened(false, true)
  entries.guardWith(() => true)
  tab.go(-1)
  tab.go(-1)
  t.same(shown, ['/lists'])
  t.equal(tab.url, '/lists')
  t.end()
})

t.test('several steps back or forward return to where one was', t => {
  const { tab, entries, shown } = opened(false, false)
  entries.push('/lists/2')
  entries.push('/lists/3')
  tab.go(-1)
  shown.length = 0
  entries.guardWith(() => true)
  tab.go(-2)
  t.equal(tab.url, '/lists/2')
  tab.go(1)
  t.equal(tab.url, '/lists/2')
  t.same(shown, [])
  t.end()
})

t.test('a link asks too, and a filter that changes the address in place does not', t => {
  const { tab, entries } = opened(false)
  entries.guardWith(() => true)
  entries.replace('/lists/1?tab=members')
  t.equal(tab.url, '/lists/1?tab=members')
  t.notOk(entries.push('/contacts'))
  t.equal(tab.url, '/lists/1?tab=members')
  t.end()
})

t.test('once the form is gone or saved, nobody is asked', t => {
  const { tab, entries, shown } = opened()
  const release = entries.guardWith(() => true)
  release()
  tab.go(-1)
  t.same(shown, ['/lists'])
  t.end()
})

t.test('after a reload the order of the entries is still known', t => {
  const { tab, entries } = opened(false)
  entries.push('/lists/2')
  const again = new GuardedHistory(
    tab,
    () => {},
    () => false,
  )
  again.guardWith(() => true)
  tab.go(-1)
  t.equal(tab.url, '/lists/2')
  t.end()
})

t.test('whoever comes back to a list finds it where they left it, and a new screen begins at its top', t => {
  const tab = new Tab('/contacts')
  const entries = new GuardedHistory(
    tab,
    () => {},
    () => true,
  )
  t.equal(tab.history.scrollRestoration, 'manual', 'the browser would scroll before the rows are there')
  tab.scrollY = 4_200
  entries.push('/contacts/1')
  t.equal(entries.scrollToRestore(), 0)
  tab.scrollY = 90
  tab.go(-1)
  t.equal(entries.scrollToRestore(), 4_200)
  tab.go(1)
  t.equal(entries.scrollToRestore(), 90)
  tab.go(-1)
  entries.push('/contacts/2')
  t.equal(entries.scrollToRestore(), 0, 'another contact, although the entry before it was scrolled')
  t.end()
})

t.test('a fragment typed into the address is an entry like others', t => {
  const { tab, entries, shown } = opened(false)
  tab.typeFragment('/lists/1#note')
  t.same(shown, ['/lists/1#note'])
  entries.guardWith(() => true)
  tab.go(-2)
  t.equal(tab.url, '/lists/1#note')
  t.end()
})
