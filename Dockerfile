# fp4 in a container. The first stage builds the wheels on Debian 12, the second installs them:
#   docker build -t fp4 . && docker run --rm -it fp4 python -c 'import fp4; print(fp4.version())'
# A GPU needs --gpus all; without one kernels run in the simulator.
FROM debian:12 AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates git
WORKDIR /fp4
COPY . .
RUN bash -c 'source utils/setup.sh && wait && configure release'
RUN python3 -m venv /tools && /tools/bin/pip install -q -r packages/requirements.txt
RUN /tools/bin/python packages/build_wheels.py --build build --out /dist

FROM debian:12-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends python3 python3-venv gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* && python3 -m venv /env
ENV PATH=/env/bin:$PATH
RUN --mount=from=build,source=/dist,target=/dist \
    pip install --no-cache-dir --find-links=/dist 'fp4[sim,ptxas]'
CMD ["python"]
