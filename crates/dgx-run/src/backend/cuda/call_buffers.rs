use std::rc::Rc;

use super::arena::Arena;
use super::driver::{DeviceMemory, Result, Stream};
use super::instance::{DataSet, Instance};
use super::program::Program;
use super::tools::{Tools, uploaded};
use crate::backend::call_seed::CallSeed;
use crate::backend::pieces::{self, Piece, PieceContents, PieceSource};
use crate::backend::tables::{self, MAPS, PrivateZones, Tables};
use crate::backend::zones::Zones;
use crate::backend::{Buffer, Observation, RunFailure};

/// The memory around a call: operands, output, scratch and tables, and the
/// variables of its module.
#[derive(Debug)]
pub(super) struct CallBuffers {
    pub instance: Rc<Instance>,
    pub outputs: Arena,
    own: Option<PrivateBuffers>,
    variables: Vec<Variable>,
    pub stream: Rc<Stream>,
}

/// Memory that only a contender's call has.
#[derive(Debug)]
struct PrivateBuffers {
    arena: Arena,
    places: PrivateZones,
    /// Copies of the tables.
    tables: Vec<DeviceMemory>,
}

/// A variable of a module, with its contents at load time.
#[derive(Debug)]
pub(super) struct Variable {
    pub address: u64,
    pub bytes: u64,
    pub initial: DeviceMemory,
}

impl CallBuffers {
    /// For a call that only reads operands and writes C.
    pub(super) fn bare(instance: Rc<Instance>, stream: Rc<Stream>) -> Result<Self> {
        Ok(Self {
            outputs: Arena::new(tables::reserve_outputs(
                instance.operator(),
                instance.groups(),
            ))?,
            instance,
            own: None,
            variables: Vec::new(),
            stream,
        })
    }

    /// Adds scratch and tables; `build` makes the tables for these addresses.
    pub(super) fn with_tables(
        mut self,
        places: PrivateZones,
        build: impl FnOnce(&Self, &PrivateZones, u64) -> std::result::Result<Tables, RunFailure>,
    ) -> std::result::Result<(Self, Tables), RunFailure> {
        let arena = Arena::new(places.zones.clone())?;
        let tables = build(&self, &places, arena.base())?;
        // The tables are written before every call. They are uploaded here as well, so that TMA
        // never caches other contents of a map.
        self.stream
            .upload(arena.address(places.tables[MAPS]), &tables.bytes[MAPS])?;
        let copies = tables.bytes.iter();
        let copies = copies.map(|bytes| uploaded(bytes, &self.stream));
        self.own = Some(PrivateBuffers {
            tables: copies.collect::<Result<_>>()?,
            arena,
            places,
        });
        Ok((self, tables))
    }

    /// Variables to put back before each call.
    pub(super) fn restore(&mut self, variables: Vec<Variable>) {
        self.variables = variables;
    }

    pub(super) fn program(&self, set: &DataSet) -> Result<Program> {
        let inputs = self.instance.pieces();
        let mut own = pieces::outputs(
            self.outputs.zones(),
            self.outputs.base(),
            self.instance.operator(),
            &inputs,
        );
        if let Some(private) = &self.own {
            own.extend(pieces::private(&private.places, private.arena.base()));
        }
        let variables = self.variables.iter().enumerate();
        let variables: Vec<Piece> = variables
            .map(|(index, variable)| Piece {
                at: variable.address,
                bytes: variable.bytes,
                what: PieceContents::Variable(PieceSource::Variable(index)),
            })
            .collect();
        let address = |source| match source {
            PieceSource::Input(zone) => set.address(zone),
            PieceSource::Table(table) => (self.own.as_ref()).map_or(0, |o| o.tables[table].address),
            PieceSource::Variable(index) => self.variables[index].initial.address,
        };
        Program::new([&inputs, &own, &variables], address, &self.stream)
    }

    /// Reads back memory after the last call. Call it before memory is prepared again: all calls
    /// share the operands.
    pub(super) fn observe(
        &self,
        program: &Program,
        tools: &Tools,
        call_seed: CallSeed,
    ) -> Result<Observation> {
        let changed = program.lowest_change(tools, call_seed)?;
        let copy = self.outputs.download(&self.stream)?;
        Ok(Observation {
            outputs: tables::split_outputs(
                self.instance.operator(),
                self.outputs.zones(),
                &copy,
                call_seed,
            ),
            trespasses: changed
                .map(|address| pieces::explain(program.pieces(), &self.arenas(), address))
                .into_iter()
                .collect(),
            ..Observation::default()
        })
    }

    /// The contents of a scratch buffer of the whole call; empty if there is none.
    pub(super) fn scratch(&self, name: &str) -> Result<Vec<u8>> {
        let name = tables::scratch_zone(name);
        let own = self.own.as_ref();
        let zone = own.and_then(|own| own.arena.zones().all().iter().position(|z| z.name == name));
        let Some((own, index)) = own.zip(zone) else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; own.arena.zones().zone(index).bytes as usize];
        self.stream.download(&mut bytes, own.arena.address(index))?;
        Ok(bytes)
    }

    /// The contents of the buffers whose names are wanted.
    pub(super) fn buffers(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>> {
        let mut found = Vec::new();
        for (zones, base) in self.arenas() {
            for zone in zones
                .all()
                .iter()
                .filter(|z| z.bytes > 0 && wanted(&z.name))
            {
                let mut bytes = vec![0; zone.bytes as usize];
                self.stream.download(&mut bytes, base + zone.offset)?;
                found.push((zone.name.clone(), bytes));
            }
        }
        Ok(found)
    }

    fn arenas(&self) -> Vec<(&Zones, u64)> {
        let inputs = (self.instance.zones(), self.instance.base());
        let outputs = (self.outputs.zones(), self.outputs.base());
        let own = self.own.as_ref().map(|o| (o.arena.zones(), o.arena.base()));
        [inputs, outputs].into_iter().chain(own).collect()
    }
}
