import { getRouteApi } from '@tanstack/react-router'
import { LinkButton } from './button.tsx'

const route = getRouteApi('/w/$workspace/$environment')

export function GetStartedLink() {
  const params = route.useParams()
  return (
    <LinkButton to="/w/$workspace/$environment/get-started" params={params}>
      Get started
    </LinkButton>
  )
}
