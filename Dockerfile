# PostgreSQL as Debian 12 packages it, with aidb installed.
#
#   docker build -t aidb .
#   docker run --rm -e POSTGRES_PASSWORD=secret -p 5432:5432 aidb
#
# The build stage has a compiler and Go, the image has neither: two libraries and two text files are copied over.

FROM golang:1.26-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc make libc6-dev postgresql-15 postgresql-server-dev-15 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The modules change seldom and the sources often: downloaded first, they stay in the cache.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make install DESTDIR=/out

FROM debian:bookworm-slim
RUN apt-get update \
 && mkdir -p /etc/postgresql-common \
 && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf \
 && apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold postgresql-15 ca-certificates \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
COPY .ci/image-entrypoint /usr/local/bin/aidb-entrypoint
RUN install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 2775 /run/postgresql

ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
USER postgres
VOLUME /var/lib/postgresql/data
EXPOSE 5432
# A fast shutdown: what docker stop sends by default would wait for the clients to leave.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s CMD pg_isready -q -h 127.0.0.1
ENTRYPOINT ["aidb-entrypoint"]
