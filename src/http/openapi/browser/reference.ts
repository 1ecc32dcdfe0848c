/** Script of the API reference: theme, language of samples, copying, search and trying requests. Pages are complete without it. */
import { enhanceCode, highlightAll } from './code.js'
import { element, icon, recall, remember } from './elements.js'
import { addSearch } from './search.js'
import { addTryButtons } from './try.js'

const root = document.documentElement

// Before the first paint, so that it has the chosen theme.
const chosen = recall('local', 'theme')
if (chosen !== '') root.dataset['theme'] = chosen
root.classList.add('js')

function isDark(): boolean {
  const { theme } = root.dataset
  return theme === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
}

function addThemeButton(bar: Element): void {
  const button = element(
    'button',
    { type: 'button', class: 'theme', 'aria-label': 'Switch between light and dark', title: 'Light or dark' },
    icon('M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18'),
  )
  button.addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark'
    root.dataset['theme'] = theme
    const isUsual = matchMedia(`(prefers-color-scheme: ${theme})`).matches
    remember('local', 'theme', isUsual ? '' : theme)
  })
  bar.append(button)
}

/** Marks the link of the part of the page that is being read. */
function followReading(nav: HTMLElement): void {
  const links = new Map(
    [...nav.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')].map(link => [link.hash.slice(1), link]),
  )
  const headings = [...links.keys()].map(id => document.getElementById(id)).filter(found => found !== null)
  if (headings.length === 0) return
  let current: HTMLAnchorElement | undefined
  const mark = () => {
    const passed = headings.filter(heading => heading.getBoundingClientRect().top < 140)
    const next = links.get(passed.at(-1)?.id ?? '')
    if (next === current) return
    current?.removeAttribute('aria-current')
    next?.setAttribute('aria-current', 'location')
    current = next
    if (next && isSidebar(nav)) keepInView(nav, next)
  }
  let isWaiting = false
  addEventListener(
    'scroll',
    () => {
      if (isWaiting) return
      isWaiting = true
      requestAnimationFrame(() => {
        isWaiting = false
        mark()
      })
    },
    { passive: true },
  )
  mark()
}

/** Otherwise it is a drawer. */
function isSidebar(nav: HTMLElement): boolean {
  return nav.clientHeight > 0 && !nav.matches(':popover-open')
}

function keepInView(nav: HTMLElement, link: HTMLElement): void {
  const box = link.getBoundingClientRect()
  const frame = nav.getBoundingClientRect()
  if (box.top < frame.top + 40 || box.bottom > frame.bottom - 120)
    nav.scrollTop += box.top - frame.top - frame.height / 3
}

/** Opens an object's fields where they are referred to, instead of leading to the end of the page. */
function unfoldObjects(within: ParentNode): void {
  for (const link of within.querySelectorAll<HTMLAnchorElement>('a.object')) {
    const details = element('details', { class: 'inner' }, element('summary', {}, link.textContent))
    const { hash } = link
    details.addEventListener(
      'toggle',
      () => {
        const fields = document.getElementById(hash.slice(1))?.querySelector('.fields')?.cloneNode(true)
        if (!(fields instanceof HTMLElement)) return
        unfoldObjects(fields)
        details.append(fields)
      },
      { once: true },
    )
    link.parentElement?.replaceWith(details)
  }
}

document.addEventListener('DOMContentLoaded', () => {
  const bar = document.querySelector('header.top')
  const nav = document.getElementById('nav')
  if (!bar || !nav) return
  addSearch(bar)
  addThemeButton(bar)
  enhanceCode()
  addTryButtons()
  highlightAll(document)
  unfoldObjects(document)
  const page = nav.querySelector<HTMLElement>('[aria-current=page]')
  if (page && isSidebar(nav)) keepInView(nav, page)
  followReading(nav)
  nav.addEventListener('click', event => {
    if (event.target instanceof Element && event.target.closest('a') && nav.matches(':popover-open'))
      nav.hidePopover()
  })
})
