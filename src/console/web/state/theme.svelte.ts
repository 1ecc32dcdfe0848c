/** Light, dark, or what the system says. Kept in the browser. */

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'postroad-theme'

const state = $state<{ theme: Theme }>({ theme: 'system' })

export function startTheme(): void {
  const kept = localStorage.getItem(KEY)
  apply(kept === 'light' || kept === 'dark' ? kept : 'system')
}

export function theme(): Theme {
  return state.theme
}

export function setTheme(next: Theme): void {
  localStorage.setItem(KEY, next)
  apply(next)
}

function apply(next: Theme): void {
  state.theme = next
  if (next === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = next
}
