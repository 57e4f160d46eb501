//! The rules of the scale decision, each as a fact on a small world that is
//! written by hand, and as properties of any world.

#![expect(clippy::unwrap_used, reason = "tests")]

mod demand;
mod growth;
mod index;
mod properties;
mod reasons;
mod removal;
mod scale_down;
mod scale_up;
mod simulation;
mod strategies;
mod target;
mod time;
mod world;
