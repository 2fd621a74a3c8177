/** The tokens of the page reach into the editor's tree: variables are inherited. */
import { EditorView } from '@codemirror/view'

export const EDITOR_THEME = EditorView.theme({
  '&': {
    backgroundColor: 'var(--color-raised)',
    color: 'var(--color-ink)',
    border: '1px solid var(--color-edge)',
    borderRadius: '0.375rem',
    fontSize: '0.8125rem',
  },
  '&.cm-focused': { outline: '2px solid var(--color-accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.5', maxHeight: '20rem' },
  '.cm-content': { minHeight: '6rem', padding: '0.5rem 0', caretColor: 'var(--color-ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'var(--color-accent-wash)',
  },
  '.tok-literal': { color: 'var(--color-green)' },
  '.tok-number': { color: 'var(--color-violet)' },
  '.tok-symbol': { color: 'var(--color-soft)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--color-red)',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--color-raised)',
    border: '1px solid var(--color-line)',
    borderRadius: '0.375rem',
    color: 'var(--color-ink)',
  },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--color-red)', padding: '0.25rem 0.5rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--font-mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.125rem 0.5rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--color-accent-fill)',
    color: 'var(--color-on-accent)',
  },
  '.cm-completionDetail': { fontStyle: 'normal', marginLeft: '1rem', opacity: '0.8' },
})
