/** Entry point of the console. */
import { mount } from 'svelte'
import App from './App.svelte'
import './style/base.css'
import { startLanguage } from './i18n/i18n.svelte'
import { startTheme } from './state/theme.svelte'

startTheme()
await startLanguage()
const target = document.getElementById('app')
if (target) mount(App, { target })
