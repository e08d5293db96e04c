name = "{{ .nuon.install.id }}"
