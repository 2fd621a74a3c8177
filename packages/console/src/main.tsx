import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider, type AnyRoute } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createQueryClient } from './web/queries.ts'
import { createConsoleRouter } from './web/router.tsx'
import { applyTheme } from './web/ui/browser.ts'
import './web/ui/theme.css'

try {
  new Intl.NumberFormat(navigator.language)
} catch {
  // Browsers may report en-US@posix, which makes charts throw.
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
}
applyTheme()
const cache = createQueryClient(() => {
  const { pathname, href } = router.state.location
  // Pages of an environment open a dialog to sign in, so that unsaved text stays. Other pages redirect.
  if (pathname !== '/sign-in' && !pathname.startsWith('/w/'))
    void router.navigate({ to: '/sign-in', search: { back: href } })
})
const router = createConsoleRouter(cache)

// Load the page's code now. Otherwise it would wait for the replies about person and environment.
const routes: Record<string, AnyRoute> = router.routesById
for (const { routeId } of router.matchRoutes(router.latestLocation) as { routeId: string }[]) {
  void routes[routeId]?.options.component?.preload?.()
}

const root = document.getElementById('root')
if (!root) throw new Error('The page has no #root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
