{{- $prefix := "spiffe://EXAMPLE.COM/mpc/ROLE/" -}}
{{- $names := 0 -}}
{{- range .SANs -}}
{{- if eq .Type "uri" -}}
{{- if not (hasPrefix $prefix .Value) -}}{{- fail "this provisioner signs for the role ROLE alone" -}}{{- end -}}
{{- $names = add $names 1 -}}
{{- end -}}
{{- end -}}
{{- if ne (int $names) 1 -}}{{- fail "exactly one URI name" -}}{{- end -}}
{
  "subject": {{ toJson .Subject }},
  "sans": {{ toJson .SANs }},
  "keyUsage": ["digitalSignature"],
  "extKeyUsage": [{{ if eq $prefix "spiffe://EXAMPLE.COM/mpc/peer/" }}"serverAuth", {{ end }}"clientAuth"]
}
