# docker build -t gradcli . && docker run --rm -v "$PWD:/work" gradcli check
FROM python:3.13-slim

COPY . /src
RUN pip install --no-cache-dir /src && rm -rf /src

# not root: what gradcli writes into a mounted folder belongs to the user given by `docker run --user`
RUN useradd --create-home gradcli
USER gradcli
WORKDIR /work
ENTRYPOINT ["gradcli"]
CMD ["--help"]
