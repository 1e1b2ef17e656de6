//! The proxy against upstreams that misbehave in every way we could think of, over real sockets.

mod answer;
mod connections;
mod cut;
mod download;
mod faults;
mod location;
mod path;
mod request;
mod smuggling;
mod upload;
mod websocket;
mod world;
